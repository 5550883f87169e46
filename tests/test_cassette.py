"""A recorded conversation: whole after each reply, readable, and played only to the requests it was recorded from."""

import json

import pytest
from helpers import Lab, plan, read, wire
from server import KEY, ModelServer

from labkit import P02, P05, AssistantMessage, ScriptedModelClient, build_agent, call, reply, say
from labkit.clients.cassette import CassetteModelClient, Recorder
from labkit.errors import CassetteError

SCRIPT = [
    read(),
    [read(), call("glob", pattern="*")],
    call("todo_write", "{broken"),
    plan("计划 🎉"),
    reply(text="half", finish_reason="length", calls=[read()]),
    reply(text="", refusal="no more", finish_reason="stop"),
]


@pytest.fixture
def tape(tmp_path):
    """Where the cassette is."""
    return tmp_path / "run.json"


def record(tape, folder, script=SCRIPT, prompt="go"):
    """Record a scripted run of P05; its agent."""
    agent = build_agent(P05, Recorder(ScriptedModelClient(script), tape, date="2026-12-01"), workspace=folder)
    agent.run(prompt)
    return agent


def test_what_was_recorded_plays_back(tape, folder):
    """The same agent on the cassette goes through the same history, in every field of each message."""
    recorded = record(tape, folder)
    client = CassetteModelClient(tape)
    agent = build_agent(P05, client, workspace=folder)
    result = agent.run("go")
    assert result.history == recorded.history
    assert [this.reply for this in result.rounds] == [one.reply for one in client.exchanges]
    assert (result.stop_reason, result.text) == ("refusal", "no more")
    assert [wire(request) for request in client.requests] == [one.messages for one in client.exchanges]


def test_the_file_is_readable_and_says_each_thing_once(tape, folder):
    """One JSON file: model, date, and for each request only what is new in it, in the characters that were said."""
    record(tape, folder)
    text = tape.read_text(encoding="utf-8")
    known = json.loads(text)
    assert [known[key] for key in ("model", "calls", "date")] == ["ScriptedModelClient", "native", "2026-12-01"]
    assert text.count("计划 🎉") == 2  # in the reply, and in the next request
    assert [one["request"]["kept"] for one in known["exchanges"]] == [0, 2, 4, 7, 9, 11]
    assert text.endswith("\n")


def test_usage_and_model_of_a_live_client_are_noted_and_never_its_key(tape, folder):
    """Of a live client the file holds model, way of calling and tokens for each exchange; no key and no address."""
    with ModelServer([read(), say("done")]) as server:
        client = server.client()
        build_agent(P05, Recorder(client, tape), workspace=folder).run("go")
        text = tape.read_text(encoding="utf-8")
        known = CassetteModelClient(tape)
        assert (known.model, known.calls) == (client.model, "native")
        assert [one.usage for one in known.exchanges] == [{"prompt_tokens": 7, "completion_tokens": 3}] * 2
        assert KEY not in text
        assert "127.0.0.1" not in text


def test_a_request_that_differs_is_refused_with_a_diff(tape, folder):
    """Another prompt, tool result or tool list is an error that shows what was recorded and what is asked now."""
    record(tape, folder)
    with pytest.raises(CassetteError, match="record the cassette again") as caught:
        build_agent(P05, CassetteModelClient(tape), workspace=folder).run("stop")
    assert '-user: {"content": "go"}\n+user: {"content": "stop"}' in str(caught.value)

    (folder / "a.txt").write_bytes(b"other\n")
    with pytest.raises(CassetteError, match="request 2") as caught:
        build_agent(P05, CassetteModelClient(tape), workspace=folder).run("go")
    assert "hello" in str(caught.value)
    assert "other" in str(caught.value)

    with pytest.raises(CassetteError, match="request 1") as caught:
        build_agent(P02, CassetteModelClient(tape), workspace=folder).run("go")
    assert "-tools: read_file, write_file, edit_file, glob, shell, todo_write" in str(caught.value)


def test_the_wording_of_schemas_may_change(tape, folder):
    """A tool of the same name with another description and schema plays all the same."""

    class Renamed:
        def __init__(self, tool):
            self.name = tool.name

        def to_openai(self, *, strict=False):
            return {"type": "function", "function": {"name": self.name, "description": "new words", "parameters": {}}}

    record(tape, folder)
    requests = Lab(folder, SCRIPT).model.requests
    client = CassetteModelClient(tape)
    for request in requests:
        client.complete(request._replace(tools=tuple(map(Renamed, request.tools))))


def test_a_refused_request_is_not_used_up(tape, folder):
    """After a request that did not fit, the one that does is still answered."""
    record(tape, folder)
    client = CassetteModelClient(tape)
    with pytest.raises(CassetteError):
        build_agent(P05, client, workspace=folder).run("stop")
    assert build_agent(P05, client, workspace=folder).run("go").stop_reason == "refusal"


def test_one_request_too_many_says_how_many_there_are(tape, folder):
    """Past its end a cassette says how many replies it holds."""
    agent = record(tape, folder, [say("done")])
    replayed = build_agent(P05, CassetteModelClient(tape), workspace=folder)
    assert replayed.run("go").history == agent.history
    with pytest.raises(CassetteError, match=r"holds 1 replies, and this was request 2"):
        replayed.run("more")


def test_a_cassette_cut_off_anywhere_says_so(tape, folder):
    """However much of the file is missing, one sentence says that it is damaged, and nothing was played."""
    record(tape, folder, [read(), say("done")])
    data = tape.read_bytes().rstrip()
    for length in range(len(data)):
        tape.write_bytes(data[:length])
        with pytest.raises(CassetteError, match=r"run\.json is damaged or cut off"):
            CassetteModelClient(tape)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "no cassette"),
        ("{}", "no cassette"),
        ('{"cassette": 2}', "format 2"),
        ('{"cassette": 1, "model": "m", "calls": "native", "date": "d", "exchanges": [{}]}', "no cassette"),
        ('{"cassette": 1, "model": "m", "calls": "native", "date": "d", "exchanges": [null]}', "no cassette"),
        ("\ufeff{}", "damaged"),
    ],
)
def test_a_file_that_is_no_cassette_says_so(tape, content, words):
    """Any other JSON, or another format, is one sentence and never a KeyError."""
    tape.write_text(content, encoding="utf-8")
    with pytest.raises(CassetteError, match=words):
        CassetteModelClient(tape)


def test_a_missing_file_is_named(tape):
    """A cassette that is not there is named, without the folders of this machine."""
    with pytest.raises(CassetteError, match=r"no cassette run\.json") as caught:
        CassetteModelClient(tape)
    assert str(tape.parent) not in str(caught.value)


def test_an_interrupted_recording_is_whole(tape, folder):
    """What was recorded before an interrupt or an error is a whole cassette, and nothing else is left beside it."""
    model = ScriptedModelClient([read(), read(), KeyboardInterrupt])
    agent = build_agent(P05, Recorder(model, tape), workspace=folder)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go")
    assert len(CassetteModelClient(tape).exchanges) == 2
    assert [path.name for path in tape.parent.iterdir() if path.is_file()] == ["run.json"]


def test_every_reply_survives_the_file(tape):
    """Text, calls, finish reason and refusal come back as they were, also where they are strange."""
    replies = [
        AssistantMessage("", (call("glob", "not json \u2028", id="x"),), "tool_calls"),
        AssistantMessage("", (), None),
        AssistantMessage("\x00\x7f\u200b", (), "content_filter"),
        AssistantMessage("", (call("", "[]", id="y"), call("a", '"{}"', id="z")), "length", "no"),
    ]
    recorder = Recorder(ScriptedModelClient(replies), tape)
    requests = Lab(".", [say("x")]).model.requests
    for _ in replies:
        recorder.complete(requests[0])
    assert [one.reply for one in CassetteModelClient(tape).exchanges] == replies
