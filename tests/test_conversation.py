"""The same conversation through every kind of client: scripted, a cassette, the SDK over loopback, streaming or not."""

import os
import subprocess
import sys

import pytest
from helpers import assert_paired, plan, read, wire
from server import ModelServer

from labkit import P05, ScriptedModelClient, build_agent, call, reply, say
from labkit.clients.cassette import CassetteModelClient, Recorder
from labkit.clients.openai import SETTINGS

FIVE_ROUNDS = [
    reply(text="I look first.", calls=[read()], finish_reason="tool_calls"),
    [read(), call("glob", pattern="*"), call("todo_write", '{"todos": "ship"}')],
    plan("计划 🎉", "ship"),
    call("write_file", path="b.txt", content="x"),
    say("done"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A workspace that the whole module shares, since nothing in it changes: nobody says yes to the write."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "a.txt").write_bytes(b"hello\n")
    return folder


@pytest.fixture(scope="module")
def scripted(place):
    """The run by the scripted client."""
    return build_agent(P05, ScriptedModelClient(FIVE_ROUNDS), workspace=place).run("go")


def same_run(result, other):
    """All that a run is, but for the request objects: history, replies, results, decisions, snapshots, audit."""
    assert tuple(result.history) == tuple(other.history)
    for this, that in zip(result.rounds, other.rounds, strict=True):
        assert wire(this.request) == wire(that.request)
        assert (this.reply, this.settled, this.before, this.after) == (
            that.reply,
            that.settled,
            that.before,
            that.after,
        )
    assert (result.text, result.stop_reason, result.audit) == (other.text, other.stop_reason, other.audit)
    return True


def test_the_script_is_worth_comparing(scripted):
    """Five rounds with text beside a call, three calls at once, a refusal, a denial and a list that was accepted."""
    assert len(scripted.rounds) == 5
    codes = [[one.result.error for one in this.settled] for this in scripted.rounds]
    assert codes == [[None], [None, None, "invalid_arguments"], [None], ["permission_denied"], []]


def test_through_a_cassette(scripted, place, tmp_path):
    """A cassette of the run plays the same run."""
    agent = build_agent(P05, Recorder(ScriptedModelClient(FIVE_ROUNDS), tmp_path / "tape.json"), workspace=place)
    assert same_run(agent.run("go"), scripted)
    replayed = build_agent(P05, CassetteModelClient(tmp_path / "tape.json"), workspace=place)
    assert same_run(replayed.run("go"), scripted)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_through_the_sdk_over_loopback(scripted, place, stream):
    """A server that says the same gives the same run, streaming or not, and was sent what the scripted model was."""
    shown = []
    with ModelServer(FIVE_ROUNDS) as server:
        agent = build_agent(P05, server.client(stream=stream, on_text=shown.append), workspace=place)
        assert same_run(agent.run("go"), scripted)
        assert [body["messages"] for body in server.bodies] == [wire(this.request) for this in scripted.rounds]
        for body in server.bodies:
            assert_paired(body["messages"])
    assert "".join(shown) == "I look first.done" * stream


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_cassette_of_a_live_run(scripted, place, tmp_path, stream):
    """What was recorded from a server, streaming or not, plays without it."""
    with ModelServer(FIVE_ROUNDS) as server:
        build_agent(P05, Recorder(server.client(stream=stream), tmp_path / "tape.json"), workspace=place).run("go")
    replayed = build_agent(P05, CassetteModelClient(tmp_path / "tape.json"), workspace=place)
    assert same_run(replayed.run("go"), scripted)


def test_with_all_settings_unset_the_lab_works(tmp_path):
    """Without the three settings and the SDK the package imports, and scripted and replayed runs go through."""
    code = """
import os, sys
sys.modules["openai"] = None
assert not {"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"} & set(os.environ)
from labkit import P05, ScriptedModelClient, build_agent, call, say
from labkit.clients.cassette import CassetteModelClient, Recorder
from labkit.clients.openai import OpenAIModelClient, SettingsError
model = Recorder(ScriptedModelClient([call("read_file", path="a.txt"), say("done")]), "tape.json")
print(build_agent(P05, model, workspace=".").run("go").text)
print(build_agent(P05, CassetteModelClient("tape.json"), workspace=".").run("go").text)
try:
    OpenAIModelClient.from_env()
except SettingsError as error:
    print(error.missing)
"""
    env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert said.splitlines() == ["done", "done", str(SETTINGS)]
