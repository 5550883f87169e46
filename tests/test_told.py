"""Tools told in words: for servers whose templates have no place for them, with a grammar or without."""

import json
from itertools import pairwise

import pytest
from helpers import REMINDER, read
from server import ModelServer, Raw

from labkit import P01, P05, AssistantMessage, ToolCall, ToolMessage, UserMessage, build_agent, call, say
from labkit.clients.told import heard, reply_format


def spoken(*calls):
    """A reply as such a server gives it: a call as JSON in the text."""
    return [say(json.dumps({"name": one.name, "arguments": json.loads(one.arguments)})) for one in calls]


class PlainServer(ModelServer):
    """A server that knows text only: 400 for tools, tool messages, late system messages, one role twice in a row."""

    def answer(self, entry, request):
        """The reply, where the request is one that a plain template can render."""
        body = self.bodies[-1]
        roles = [message["role"] for message in body["messages"]]
        alternate = all(a != b for a, b in pairwise(roles))
        plain = all(set(message) == {"role", "content"} for message in body["messages"])
        if "tools" in body or not plain or not alternate or set(roles[1:]) - {"user", "assistant"}:
            return Raw({"error": f"template: {roles}"}, 400).response(self, request)
        return super().answer(entry, request)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("calls", ["json_schema", "text"])
def test_a_run_on_a_server_that_knows_text_only(folder, calls, stream):
    """The loop runs through, reminder included, on a server with no place for tools; people see the answer only."""
    shown = []
    script = [*spoken(read(), read(), read()), say('{"answer": "It says hello."}')]
    with PlainServer(script) as server:
        client = server.client(calls=calls, late_system_role="user", stream=stream, on_text=shown.append)
        result = build_agent(P05, client, workspace=folder).run("What does a.txt say?")
        assert (result.text, result.stop_reason) == ("It says hello.", "completed")
        assert [one.result.content for this in result.rounds for one in this.settled] == ["hello\n"] * 3
        first, last = server.bodies[0], server.bodies[-1]
        assert all(f"- {name}: " in first["messages"][0]["content"] for name in ("read_file", "shell", "todo_write"))
        assert last["messages"][2]["content"] == '{"name": "read_file", "arguments": {"path": "a.txt"}}'
        assert last["messages"][3]["content"] == "Result of read_file: hello\n"
        assert last["messages"][-1]["content"] == f"Result of read_file: hello\n\n\n{REMINDER}"
        assert ("response_format" in last) == (calls == "json_schema")
        assert shown == ["It says hello."] * stream


def test_the_history_of_another_client_can_be_told(folder):
    """Several calls in one message, and an answer in plain text, are told to a text-only server too."""
    script = [say('{"answer": "yes"}')]
    with PlainServer(script) as server:
        agent = build_agent(P05, server.client(calls="json_schema"), workspace=folder)
        agent._history.extend(two_calls())
        assert agent.run("And?").text == "yes"
        told = [message["content"] for message in server.bodies[0]["messages"]]
        assert told[2].splitlines() == [
            '{"name": "read_file", "arguments": {"path": "a.txt"}}',
            '{"name": "glob", "arguments": {"pattern": "*"}}',
        ]
        assert told[3] == "Result of read_file: hello\n\n\nResult of glob: a.txt"
        assert told[4] == '{"answer": "Done."}'


def two_calls():
    """A history with two calls in one message, and an answer."""
    calls = (read(id="a"), call("glob", pattern="*", id="b"))
    return [
        UserMessage("go"),
        AssistantMessage("", calls),
        ToolMessage("a", "hello\n"),
        ToolMessage("b", "a.txt"),
        say("Done."),
    ]


def test_the_grammar_names_each_tool_and_the_answer(folder):
    """The reply's format has a closed branch for each tool, with the schema it is validated by, and one to end."""
    with PlainServer([say('{"answer": "x"}')]) as server:
        agent = build_agent(P05, server.client(calls="json_schema"), workspace=folder)
        request = agent.run("go").rounds[0].request
        sent = server.bodies[0]["response_format"]
    assert sent == reply_format(request.tools)
    branches = sent["json_schema"]["schema"]["anyOf"]
    assert [one["properties"].get("name", {}).get("const") for one in branches] == [
        *[tool.name for tool in request.tools],
        None,
    ]
    assert all(one["additionalProperties"] is False for one in branches)
    for branch, tool in zip(branches, request.tools, strict=False):
        assert branch["properties"]["arguments"] == tool.to_openai()["function"]["parameters"]


TEXTS = {
    '{"name": "glob", "arguments": {"pattern": "*"}}': ToolCall("", "glob", '{"pattern": "*"}'),
    'Sure!\n```json\n{"name": "glob", "arguments": {"pattern": "*"}}\n```\nDone.': ToolCall(
        "", "glob", '{"pattern": "*"}'
    ),
    '{"name": "glob", "arguments": "{\\"pattern\\": 1}"}': ToolCall("", "glob", '{"pattern": 1}'),
    '{ not json } {"name": "none", "arguments": []}': ToolCall("", "none", "[]"),
    '{"answer": "yes"}': "yes",
    '{"answer": 3}': '{"answer": 3}',
    '{"name": "glob"}': '{"name": "glob"}',
    '{"name": 3, "arguments": {}}': '{"name": 3, "arguments": {}}',
    "no call at all {": "no call at all {",
    "": "",
    "[1, 2]": "[1, 2]",
    "{" * 5000: "{" * 5000,
}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_what_is_heard_in_a_text(text):
    """A call in the text, fenced or bare, becomes a call; an answer its text; all else stays as it was said."""
    said, wanted = heard(AssistantMessage(text, finish_reason="stop")), TEXTS[text]
    if isinstance(wanted, ToolCall):
        assert (said.tool_calls, said.content) == ((wanted,), "")
    else:
        assert (said.tool_calls, said.content) == ((), wanted)


def test_a_call_cut_off_is_answered_as_cut_off(folder):
    """A call that the length limit cut off is settled as `truncated`, and the run goes on, as with a native call."""
    cut = AssistantMessage('{"name": "write_file", "arguments": {"path": "b.txt", "content": "x', (), "length")
    with PlainServer([cut, say('{"answer": "done"}')]) as server:
        result = build_agent(P05, server.client(calls="json_schema"), workspace=folder).run("go")
    assert [one.result.error for one in result.rounds[0].settled] == ["truncated"]
    assert result.text == "done"
    assert not (folder / "b.txt").exists()


def test_without_tools_nothing_is_told():
    """A request without tools is plain text both ways in every mode."""
    with PlainServer([say('{"answer": "x"}')]) as server:
        result = build_agent(P01, server.client(calls="json_schema")).run("Say it in JSON.")
        assert result.text == '{"answer": "x"}'
        assert "Tools:" not in server.bodies[0]["messages"][0]["content"]
        assert "response_format" not in server.bodies[0]
