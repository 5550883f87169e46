"""The live client against a real server on loopback, by the real SDK: quirks, errors, secrets, time."""

import os
import re
import signal
import socket
import subprocess
import sys
import traceback

import pytest
from helpers import REMINDER, assert_paired, read
from server import KEY, MODEL, Cut, ModelServer, Raw, Slow, bytes_server, completion, pieces, sse

from labkit import P01, P05, AssistantMessage, ModelError, SettingsError, ToolCall, build_agent, call, reply, say
from labkit.clients.openai import SETTINGS, OpenAIModelClient
from labkit.clients.replies import events
from labkit.messages import SystemMessage, UserMessage
from labkit.model import MessageView, ModelRequest

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
QUESTION = ModelRequest(MessageView([UserMessage("hello")]))


def ask(*script, request=QUESTION, **options):
    """The reply to one request, from a server with this script."""
    with ModelServer(list(script)) as server:
        return server.client(**options).complete(request)


def failure(*script, **options):
    """The words of the ModelError that such a server leads to."""
    with pytest.raises(ModelError) as caught:
        ask(*script, **{"retries": 0, **options})
    assert caught.value.__context__ is None
    return str(caught.value)


# ---- settings ----


@pytest.mark.parametrize("blank", ["", "  ", None])
@pytest.mark.parametrize("names", [SETTINGS, SETTINGS[:1], SETTINGS[1:]])
def test_all_missing_settings_are_named_at_once(monkeypatch, blank, names):
    """Each setting that is missing or blank is named in one error, before any request, with two ways to go on."""
    for name in SETTINGS:
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    for name in names:
        monkeypatch.delenv(name) if blank is None else monkeypatch.setenv(name, blank)
    with pytest.raises(SettingsError) as caught:
        OpenAIModelClient.from_env()
    assert caught.value.missing == names
    assert [name in str(caught.value) for name in SETTINGS] == [name in names for name in SETTINGS]
    assert "--script" in str(caught.value)
    assert "labkit serve" in str(caught.value)


def test_the_three_settings_make_a_client(monkeypatch):
    """from_env takes key, address and model from the environment, without the blanks around them."""
    with ModelServer([say("hi")]) as server:
        for name, value in zip(SETTINGS, (KEY, server.url, MODEL), strict=True):
            monkeypatch.setenv(name, f" {value}\n")
        assert OpenAIModelClient.from_env().complete(QUESTION).content == "hi"
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert server.bodies == [{"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}]


@pytest.mark.parametrize("address", ["127.0.0.1:8080/v1", "ftp://x/v1", "http://", "http://x:nonsense/v1", "v1"])
def test_an_address_that_is_none_is_refused(address):
    """A base URL without scheme or host is a settings error that shows what one looks like."""
    with pytest.raises(SettingsError, match="http://127"):
        OpenAIModelClient(model="m", base_url=address, api_key=KEY)


@pytest.mark.parametrize("key", ["", " ", "sk-\u201cquoted\u201d", "sk-a b", "sk-a\nb"])
def test_a_key_that_is_none_is_refused_unseen(key):
    """A key that could not stand in a header is a settings error that does not show it."""
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        OpenAIModelClient(model="m", base_url="http://127.0.0.1:9/v1", api_key=key)
    assert "sk-" not in str(caught.value)


def test_arguments_outside_the_closed_sets_are_named():
    """An unknown mode or role, and options that the client sets itself, are refused when the client is made."""
    for wrong in ({"calls": "magic"}, {"late_system_role": "tool"}, {"options": {"stream": True}}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            OpenAIModelClient(model="m", base_url="http://127.0.0.1:9/v1", api_key=KEY, **wrong)


def test_without_the_sdk_only_the_live_client_fails():
    """With `openai` not installed the module imports; making a client names the extra to install."""
    code = """
import sys
sys.modules["openai"] = None
from labkit.clients.openai import OpenAIModelClient
try:
    OpenAIModelClient(model="m", base_url="http://127.0.0.1:9/v1", api_key="sk-none")
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    assert said.startswith("ModelError ")
    assert "agent-loop-lab[live]" in said


# ---- what is sent ----


@pytest.mark.parametrize("tail", ["", "/", "//", "/chat/completions", "/chat/completions/"])
def test_every_spelling_of_the_address_asks_once_at_one_place(tail):
    """With and without a slash at the end, or with the whole path pasted: one request to /v1/chat/completions."""
    with ModelServer([say("hi")]) as server:
        server.client(base_url=server.url + tail).complete(QUESTION)
        assert server.paths == ["/v1/chat/completions"]


def test_without_tools_there_is_no_tools_key():
    """A request without tools has no `tools` key; one with tools lists them."""
    with ModelServer([say("hi"), say("hi")]) as server:
        client = server.client()
        client.complete(QUESTION)
        agent = build_agent(P05, client, workspace=".")
        agent.run("hello")
        assert "tools" not in server.bodies[0]
        assert len(server.bodies[1]["tools"]) == 6


def test_options_join_the_body():
    """Options such as temperature stand in each request's body."""
    with ModelServer([say("hi")]) as server:
        server.client(options={"temperature": 0, "max_tokens": 9}).complete(QUESTION)
        assert server.bodies[0] | {"messages": 0} == {"model": MODEL, "temperature": 0, "max_tokens": 9, "messages": 0}


@STREAM
def test_each_body_is_what_the_request_says(folder, stream):
    """The body that grows by what is new is, request for request, the request's own wire form."""
    script = [read(), [read(), read()], call("todo_write", todos=[{"content": "计划 🎉", "status": "pending"}])]
    with ModelServer([*script, *[read()] * 5, say("done")]) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        result = agent.run("go \u2028 on")
        assert result.rounds[6].request.messages[-1] == SystemMessage(REMINDER)  # which is gone from the next body
        agents = [this.request.to_openai() for this in result.rounds]
        assert [{k: body[k] for k in ("messages", "tools")} for body in server.bodies] == agents
        assert all(body.get("stream", False) is stream for body in server.bodies)


def test_one_client_serves_two_agents(folder):
    """Two agents that take turns with one client send each their own history."""
    with ModelServer([say(f"r{n}") for n in range(6)]) as server:
        client = server.client()
        agents = [build_agent(P01, client), build_agent(P01, client)]
        for turn in range(3):
            for name, agent in zip("ab", agents, strict=True):
                agent.run(f"{name}{turn}")
        texts = [[m["content"] for m in body["messages"][1:]] for body in server.bodies]
        assert texts[4] == ["a0", "r0", "a1", "r2", "a2"]
        assert texts[5] == ["b0", "r1", "b1", "r3", "b2"]


class NoLateSystem(ModelServer):
    """A server whose chat template refuses a system message that is not the first."""

    def answer(self, entry, request):
        """400 where there is one."""
        if any(m["role"] == "system" for m in self.bodies[-1]["messages"][1:]):
            said = {"error": {"message": "System message must be at the beginning."}}
            return Raw(said, 400).response(self, request)
        return super().answer(entry, request)


def test_a_template_that_refuses_late_system_messages(folder):
    """`late_system_role` maps the reminder's role, on the wire only; else the fourth request fails, and says so."""
    script = [read(), read(), read(), say("done")]
    with NoLateSystem(script) as server:
        agent = build_agent(P05, server.client(), workspace=folder)
        with pytest.raises(ModelError, match=r"System message must be at the beginning.*late_system_role"):
            agent.run("go")
    with NoLateSystem(script) as server:
        agent = build_agent(P05, server.client(late_system_role="user"), workspace=folder)
        result = agent.run("go")
        assert server.bodies[3]["messages"][-1] == {"role": "user", "content": REMINDER}
        assert server.bodies[3]["messages"][0]["role"] == "system"
        assert result.rounds[3].request.messages[-1] == SystemMessage(REMINDER)


# ---- what comes back ----

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
NOISE = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": "hm"}
QUIRKS = {
    "content null": ({"content": None}, AssistantMessage("", (), "stop")),
    "content missing": ({}, AssistantMessage("", (), "stop")),
    "content in parts": (
        {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]},
        AssistantMessage("ab", (), "stop"),
    ),
    "calls null": ({"content": "x", "tool_calls": None}, AssistantMessage("x", (), "stop")),
    "calls empty": ({"content": "x", "tool_calls": []}, AssistantMessage("x", (), "stop")),
    "extra fields": (
        {"content": None, "tool_calls": [{**CALL, "index": 0, "extra": {}}], **NOISE},
        AssistantMessage("", (ToolCall("c1", "read_file", '{"path": "a.txt"}'),), "stop"),
    ),
    "a refusal": ({"content": None, "refusal": "no"}, AssistantMessage("", (), "stop", "no")),
    "a refusal in parts": (
        {"content": [{"type": "refusal", "refusal": "no"}]},
        AssistantMessage("", (), "stop", "no"),
    ),
    "arguments an object": (
        {"tool_calls": [{"id": 7, "function": {"name": "glob", "arguments": {"pattern": "*"}}}]},
        AssistantMessage("", (ToolCall("7", "glob", '{"pattern": "*"}'),), "stop"),
    ),
    "arguments missing": (
        {"tool_calls": [{"function": {"name": "glob"}}]},
        AssistantMessage("", (ToolCall("", "glob", "{}"),), "stop"),
    ),
    "a call of nothing": ({"tool_calls": [{"id": None}]}, AssistantMessage("", (ToolCall("", "", "{}"),), "stop")),
    "a lone call, no list": (
        {"tool_calls": CALL},
        AssistantMessage("", (ToolCall("c1", "read_file", '{"path": "a.txt"}'),), "stop"),
    ),
}


@STREAM
@pytest.mark.parametrize("quirk", QUIRKS)
def test_quirks_of_servers_are_absorbed(quirk, stream):
    """What servers send in odd forms is read as what they mean, streamed or not."""
    message, wanted = QUIRKS[quirk]
    chunk = {"choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]}
    answer = Raw(sse([chunk]), type="text/event-stream") if stream else Raw(completion(message))
    assert ask(answer, stream=stream) == wanted


@pytest.mark.parametrize(
    "given",
    [
        say("Grüße \u2028 计划"),
        call("todo_write", todos=[{"content": "ship it", "status": "pending"}], id="c1"),
        [read(id="a"), read("b.txt", id="b"), call("glob", pattern="*", id="c")],
        reply(text="I read both.", calls=[read(id="a"), read(id="b")], finish_reason="length"),
        reply(refusal="I would rather not.", finish_reason="stop"),
    ],
)
def test_streaming_gives_the_same_message(given):
    """Whatever a reply holds, it is the same message in one piece and in many, and the text is shown as it came."""
    shown = []
    whole = ask(given)
    assert ask(given, stream=True, on_text=shown.append) == whole
    assert "".join(shown) == whole.content
    assert len(shown) > 1 or not whole.content


def test_a_stream_asked_for_and_not_given():
    """A server that answers in one piece though a stream was asked for is read all the same, and its text shown."""
    shown = []
    said = ask(Raw(completion({"content": "hello"})), stream=True, on_text=shown.append)
    assert (said.content, shown) == ("hello", ["hello"])


def test_calls_in_a_stream_are_told_apart_by_id_where_the_index_lies():
    """Servers that give each call the index 0, or none, but an id of its own, are read as several calls."""
    for index in ({"index": 0}, {}):
        first, second = ({"tool_calls": [{**CALL, "id": name, **index}]} for name in "ab")
        chunks = [{"choices": [{"delta": delta}]} for delta in (first, second)]
        chunks.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
        said = ask(Raw(sse(chunks), type="text/event-stream"), stream=True)
        assert [one.id for one in said.tool_calls] == ["a", "b"]
        assert [one.arguments for one in said.tool_calls] == ['{"path": "a.txt"}'] * 2


def test_a_stream_with_comments_and_other_line_ends():
    """Comments, other fields, CRLF and an event in two data lines are read as the standard says."""
    text = ': busy\r\n\r\nevent: x\r\nid: 3\r\ndata: {"choices": [{"delta": {"content": "a\u2028b"},\r\n'
    text += 'data: "finish_reason": "stop"}]}\r\n\r\ndata:[DONE]\r\n\r\n'
    assert ask(Raw(text, type="text/event-stream"), stream=True).content == "a\u2028b"
    data = text.encode()
    for size in (1, 2, 7):
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(events(parts)) == list(events([data]))


def test_a_stream_may_end_without_its_last_word():
    """A stream that said how it finished is whole without [DONE]; one that says [DONE] is whole without a finish."""
    chunks = pieces({"content": "hello"}, "stop")
    assert ask(Raw(sse(chunks, done=False), type="text/event-stream"), stream=True).content == "hello"
    assert ask(Raw(sse(chunks[:-2]), type="text/event-stream"), stream=True).content == "hello"


def test_tokens_are_counted():
    """`usage` adds up the requests and the tokens that the server reported, streamed or not."""
    with ModelServer([say("a"), say("b")]) as server:
        for stream, requests in ((False, 1), (True, 1)):
            client = server.client(stream=stream)
            client.complete(QUESTION)
            assert client.usage == (requests, 7, 3)


# ---- what goes wrong, in words ----


@STREAM
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Raw("<!doctype html><p>hi", type="text/html"), "web page, not JSON.*/v1"),
        (Raw("", type="application/json"), "empty.*/v1"),
        (Raw("hello", type="text/plain"), "not JSON.*/v1"),
        (Raw("[]"), "no object.*/v1"),
        (Raw({"object": "list"}), "no choices.*/v1"),
        (Raw({"choices": []}), "no choices"),
        (Raw({"choices": None}), "no choices"),
        (Raw({"choices": [{"message": None}]}), "no message"),
        (Raw({"error": {"message": "model is loading", "code": 1}}), "an error: model is loading"),
        (Raw({"error": "out of memory"}), "an error: out of memory"),
        (Raw({"detail": "bad field"}, 422), "answered 422 .bad field.*json_schema"),
        (Raw({"error": {"message": "no such model"}}, 404), "answered 404 .no such model.*/v1.*test-model"),
        (Raw("<h1>Not here</h1>", 404, "text/html"), "answered 404.*/v1"),
        (Raw({"error": {"message": "slow down"}}, 429), "answered 429 .slow down.*wait"),
        (Raw("", 503), "answered 503.*later"),
    ],
)
def test_an_error_names_address_cause_and_what_to_do(answer, words, stream):
    """No answer of a server is an AttributeError: each names the address, what it was, and what to do."""
    said = failure(answer, stream=stream)
    assert re.match(r"http://127\.0\.0\.1:\d+/v1/chat/completions: ", said)
    assert re.search(words, said)


def test_nobody_listens():
    """An address where nobody answers gives one sentence that names it and says to start the server."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        client = OpenAIModelClient(model="m", base_url=f"http://u:secret-pw@127.0.0.1:{port}/v1", api_key=KEY)
        with pytest.raises(ModelError, match=rf"127.0.0.1:{port}/v1.*no connection.*Start the server") as caught:
            client.complete(QUESTION)
    assert "secret-pw" not in str(caught.value)


@STREAM
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_server_that_stops_in_mid_stream(folder, stream, part):
    """A reply that breaks off is an error, never half a message; the history stays as it was, the agent usable."""
    script = [read(), Cut(say("a long text, of which the end is missing"), part), say("done")]
    with ModelServer(script) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        with pytest.raises(ModelError, match="broke off"):
            agent.run("go")
        before = tuple(agent.history)
        assert len(before) == 3
        assert agent.run(None).text == "done"
        assert agent.history[:3] == before
        assert_paired(server.bodies[-1]["messages"])


def test_an_error_in_mid_stream():
    """An error object among the chunks is an error, in the server's words."""
    chunks = [*pieces({"content": "hello"}, "stop")[:3], {"error": {"message": "out of memory"}}]
    assert "out of memory" in failure(Raw(sse(chunks), type="text/event-stream"), stream=True)


# ---- retries and time ----

BUSY = Raw({"error": {"message": "busy"}}, 429, headers={"Retry-After": "0"})
DOWN = Raw("", 503, headers={"Retry-After": "0"})


@STREAM
def test_after_a_429_or_a_5xx_one_reply_is_in_the_history(stream):
    """A busy server is asked again; then exactly one assistant message is in the history."""
    with ModelServer([BUSY, DOWN, say("hi")]) as server:
        agent = build_agent(P01, server.client(stream=stream))
        agent.run("hello")
        assert [type(one).__name__ for one in agent.history] == ["UserMessage", "AssistantMessage"]
        assert server.bodies[0] == server.bodies[1] == server.bodies[2]


def test_retries_have_a_bound():
    """After the retries allowed it gives up and says how often it tried; other refusals are not tried again."""
    with ModelServer([DOWN] * 9) as server:
        with pytest.raises(ModelError, match=r"503.*tried 3 times"):
            server.client().complete(QUESTION)
        assert len(server.bodies) == 3
    with ModelServer([Raw("", 400), say("hi")]) as server:
        with pytest.raises(ModelError, match="400"):
            server.client().complete(QUESTION)
        assert len(server.bodies) == 1


def test_a_wait_beyond_the_time_is_not_begun():
    """A Retry-After that would end behind the time bound ends the request at once."""
    with ModelServer([Raw("", 429, headers={"Retry-After": "3600"}), say("hi")]) as server:
        with pytest.raises(ModelError, match="429"):
            server.client(timeout=60).complete(QUESTION)
        assert len(server.bodies) == 1


@STREAM
def test_a_server_that_drips_does_not_stretch_the_time(stream):
    """The time bound holds over the whole body: one that drips for longer than it never becomes a reply."""
    said = failure(Slow(say("late"), drips=60), stream=stream, timeout=0.3)
    assert "no whole answer within 0.3 s" in said
    assert "timeout=" in said


def test_a_server_that_drips_its_headers_does_not_stretch_the_time():
    """The time bound holds over the headers too."""
    data = b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 60 + b"\r\nContent-Length: 2\r\n\r\n{}"
    with bytes_server(data, drips=85) as url:
        client = OpenAIModelClient(model="m", base_url=url, api_key=KEY, timeout=0.3)
        with pytest.raises(ModelError, match=r"within 0\.3 s"):
            client.complete(QUESTION)


def test_a_server_that_never_answers():
    """A server that accepts and never answers is given up at the time bound, and not tried again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        client = OpenAIModelClient(model="m", base_url=url, api_key=KEY, timeout=0.2)
        with pytest.raises(ModelError, match=r"within 0\.2 s") as caught:
            client.complete(QUESTION)
        assert url in str(caught.value)
        assert client.usage.requests == 1


def test_the_default_time_is_a_minute():
    """The bound that a client has unless told otherwise is 60 s, not the SDK's 600."""
    client = OpenAIModelClient(model="m", base_url="http://127.0.0.1:9/v1", api_key=KEY)
    assert client.timeout == 60


def test_a_cap_on_requests():
    """No more requests than the cap are sent, retries included, and the error says how to send more."""
    with ModelServer([DOWN, say("a"), say("b")]) as server:
        client = server.client(max_requests=2)
        assert client.complete(QUESTION).content == "a"
        with pytest.raises(ModelError, match=r"cap of 2 requests.*max_requests"):
            client.complete(QUESTION)
        assert len(server.bodies) == 2


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not sent there")
@STREAM
def test_an_interrupt_during_the_wait(folder, stream):
    """Ctrl-C while the server is waited for leaves the history as before the request, paired, and the agent usable."""

    class Interrupting(ModelServer):
        def answer(self, entry, request):
            if len(self.bodies) == 2:
                os.kill(os.getpid(), signal.SIGINT)
                self.closing.wait(10)
            return super().answer(entry, request)

    with Interrupting([read(), say("lost"), say("done")]) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        with pytest.raises(KeyboardInterrupt):
            agent.run("go")
        assert len(agent.history) == 3
        assert agent.run(None).text == "done"
        assert_paired(server.bodies[-1]["messages"])


# ---- the key ----


def trace_of(error):
    """The traceback with the variables of each frame, but the test's own."""
    error.__traceback__ = error.__traceback__.tb_next
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def test_the_key_is_seen_nowhere(folder):
    """No repr, error, or traceback with its variables shows the key or four characters of it in a row."""
    told = f"Incorrect API key provided: {KEY[:9]}*****{KEY[-5:]} ({KEY})"
    seen = []
    for answer in (
        Raw({"error": {"message": told}}, 401),
        Raw({"error": {"message": told}}, 500),
        Raw({"error": {"message": told}}),
        Raw(sse([{"error": told}]), type="text/event-stream"),
        Raw(told, type="text/html"),
    ):
        with ModelServer([answer]) as server:
            client = server.client(retries=0, stream=True)
            agent = build_agent(P05, client, workspace=folder)
            seen += [repr(client), str(client), repr(vars(client))]
            with pytest.raises(ModelError) as caught:
                agent.run("go")
            seen += [trace_of(caught.value), repr(caught.value), repr(caught.value.args), repr(agent.history)]
    whole = "\n".join(seen)
    parts = {KEY[at : at + 4] for at in range(len(KEY) - 3)}
    assert [part for part in parts if part in whole] == []


@pytest.mark.parametrize("status", [401, 403])
def test_what_a_server_says_of_a_key_is_not_quoted(status):
    """Of a refusal of the key only the status is told, for servers quote keys with some stars in them."""
    said = failure(Raw({"error": {"message": f"bad key {KEY[:3]}***{KEY[-3:]}"}}, status))
    assert f"answered {status}. Set OPENAI_API_KEY" in said
    assert KEY[-3:] not in said


def test_the_key_is_not_in_a_trace_of_a_client_that_was_not_made(monkeypatch):
    """Where making the client fails, the traceback's variables do not show the key either."""
    monkeypatch.setitem(os.environ, "OPENAI_API_KEY", KEY)
    monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", "nonsense")
    monkeypatch.setitem(os.environ, "OPENAI_MODEL", MODEL)
    with pytest.raises(SettingsError) as caught:
        OpenAIModelClient.from_env()
    assert KEY not in trace_of(caught.value)


# ---- proxies ----


def test_a_proxy_does_not_stand_between_this_machine_and_itself(monkeypatch):
    """Proxy variables, also of a kind that is not spoken here, do not disturb a server on loopback."""
    for name in ("ALL_PROXY", "HTTP_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:1")
    assert ask(say("hi")).content == "hi"
    with pytest.raises(ModelError, match="NO_PROXY"):
        OpenAIModelClient(model="m", base_url="http://model.test/v1", api_key=KEY)


def test_a_proxy_is_used_for_the_rest(monkeypatch):
    """A server elsewhere is asked by the proxy that the environment names."""
    with ModelServer([say("hi")]) as server:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, server.url.removesuffix("/v1"))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        client = OpenAIModelClient(model="m", base_url="http://model.test/v1", api_key=KEY, timeout=60)
        assert client.complete(QUESTION).content == "hi"
        assert server.headers[0]["Host"] == "model.test"
