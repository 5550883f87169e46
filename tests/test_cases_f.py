"""Area f of the catalogue: what broke the clients of other products, each as a kind, by its number."""

import importlib
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from helpers import Lab, assert_paired, read
from server import KEY, MODEL, ModelServer, Raw, Slow, completion, pieces, sse

from labkit import P05, AssistantMessage, ModelError, SettingsError, build_agent, call, reply, say
from labkit.clients.openai import SETTINGS, OpenAIModelClient

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


# ---- f1: a missing key or a wrong address, at the wrong time or as nonsense ----


def test_f1_import_and_scripted_runs_need_no_setting_and_no_sdk():
    """Every client's module imports with the settings unset and `openai` missing, and a scripted run works."""
    code = """
import sys
sys.modules["openai"] = sys.modules["httpx2"] = None
import labkit, labkit.clients.openai, labkit.clients.cassette, labkit.clients.local
from labkit import P05, ScriptedModelClient, build_agent, say
print(build_agent(P05, ScriptedModelClient([say("done")]), workspace=".").run("go").text)
"""
    env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8", check=True)
    assert (said.stdout, said.stderr) == ("done\n", "")


def test_f1_only_the_live_call_fails_and_names_the_variable(monkeypatch):
    """Without its key a live client fails when it is made, in one sentence that names the variable."""
    for name in SETTINGS:
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    importlib.import_module("labkit.clients.openai")
    with pytest.raises(SettingsError, match=r"^a live model needs OPENAI_API_KEY: set it"):
        OpenAIModelClient.from_env()


@STREAM
@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/json", "text/event-stream"])
@pytest.mark.parametrize("body", ["<html>hi</html>", "hello", '"text"', "7", "null", "[1]", '{"ok": true}', ""])
def test_f1_an_answer_that_is_none_names_the_base_url(folder, kind, body, stream):
    """Whatever a wrong address answers with status 200, the error is ours and names the address."""
    text = f"data: {body}\n\n" if kind == "text/event-stream" and body else body
    with ModelServer([Raw(text, type=kind)]) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        with pytest.raises(ModelError) as caught:
            agent.run("go")
        assert f"{server.url}/chat/completions: " in str(caught.value)
        assert "/v1." in str(caught.value) or kind == "text/event-stream"
        assert len(agent.history) == 1


@pytest.mark.parametrize("tail", ["", "/"])
def test_f1_both_spellings_of_the_address_request_the_same_path_once(tail):
    """With and without the final slash it is one request to /v1/chat/completions."""
    with ModelServer([say("hi")]) as server:
        client = OpenAIModelClient(model=MODEL, base_url=server.url + tail, api_key=KEY, timeout=20)
        client.complete(Lab(".", [say("x")]).model.requests[0])
        assert server.paths == ["/v1/chat/completions"]


# ---- f2: sending back fields that the server did not ask for ----

ECHOED = {
    "refusal": None,
    "annotations": [],
    "audio": None,
    "function_call": None,
    "reasoning_content": "let me think",
    "reasoning": "hm",
    "provider_specific_fields": {"x": 1},
}


@STREAM
@pytest.mark.parametrize("text", [None, "", "I look."])
def test_f2_only_the_fields_asked_for_go_back(folder, stream, text):
    """Over two user turns assistant messages hold role, content and calls, each with id, type and function."""
    noisy = {"id": "c1", "type": "function", "index": 0, "x": 1}
    noisy["function"] = {"name": "read_file", "arguments": '{"path": "a.txt"}', "parsed": None}
    first = {"content": text, "tool_calls": [noisy], **ECHOED}
    last = {"content": "done", "tool_calls": None, **ECHOED}
    script = [Raw(completion(message, "stop")) for message in (first, last, last)]
    if stream:
        script = [chunked(message) for message in (first, last, last)]
    with ModelServer(script) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        agent.run("go")
        agent.run("more")
        for body in server.bodies:
            assert_paired(body["messages"])
            for message in body["messages"]:
                if message["role"] != "assistant":
                    continue
                calls = message.get("tool_calls")
                assert set(message) == {"role", "content"} | ({"tool_calls"} if calls else set())
                assert message["content"] is None or type(message["content"]) is str
                assert calls or type(message["content"]) is str
                for one in calls or ():
                    assert set(one) == {"id", "type", "function"}
                    assert set(one["function"]) == {"name", "arguments"}
        assert server.bodies[1]["messages"][2]["content"] == (text or None)


def chunked(message):
    """A message with its extra fields in one chunk of a stream."""
    delta = {"choices": [{"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None}]}
    return Raw(sse([delta, *pieces({}, "stop")[1:]]), type="text/event-stream")


@STREAM
def test_f2_no_empty_lists_and_no_foreign_roles_are_sent(folder, stream):
    """What is sent has no empty tool_calls, no null tool list, and only the four roles."""
    script = [reply(text="", finish_reason="stop"), reply(refusal="no", finish_reason="stop"), say("ok")]
    with ModelServer(script) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        for prompt in ("one", "two", "three"):
            agent.run(prompt)
        sent = server.bodies[-1]["messages"]
        assert [message["role"] for message in sent] == ["system", *["user", "assistant"] * 2, "user"]
        assert all(set(message) == {"role", "content"} for message in sent)


# ---- f3: retries multiply the wait ----


@STREAM
def test_f3_the_total_time_is_stated_and_held(stream):
    """A server that never comes to an end is given up at the time stated, retries or not, and the error names both."""
    for retries in (0, 2):
        with ModelServer([Slow(say("late"), drips=60)] * 3) as server:
            client = server.client(timeout=0.2, retries=retries, stream=stream)
            with pytest.raises(ModelError, match=r"within 0\.2 s") as caught:
                client.complete(Lab(".", [say("x")]).model.requests[0])
            assert server.url in str(caught.value)
            assert len(server.bodies) <= 1


def test_f3_retries_share_the_one_time_bound(monkeypatch):
    """A server that always says to come back soon is asked no longer than the time stated, however many retries."""
    slept = []
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(slept), sleep=slept.append)
    monkeypatch.setattr("labkit.clients.openai.time", clock)
    busy = Raw("", 429, headers={"Retry-After": "100"})
    with ModelServer([busy] * 100) as server:
        with pytest.raises(ModelError, match="429"):
            server.client(timeout=350, retries=99).complete(Lab(".", [say("x")]).model.requests[0])
        assert (len(server.bodies), slept) == (4, [100, 100, 100])


@STREAM
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_f3_after_a_busy_answer_one_reply_is_in_the_history(folder, status, stream):
    """After a 429 or a 5xx exactly one assistant message gets into the history, and one request was repeated."""
    with ModelServer([Raw("", status, headers={"Retry-After": "0"}), read(), say("done")]) as server:
        agent = build_agent(P05, server.client(stream=stream), workspace=folder)
        agent.run("go")
        assert sum(isinstance(message, AssistantMessage) for message in agent.history) == 2
        assert server.bodies[0] == server.bodies[1]
        assert_paired([message.to_openai() for message in agent.history])


def test_f3_an_error_of_the_client_leaves_the_agent_usable(folder):
    """After each kind of failure the history is paired and as before, and the next prompt is answered."""
    failures = [Raw("", 400), Raw("<html>", type="text/html"), Raw({"choices": []}), Raw("", 401)]
    script = [item for failure in failures for item in (read(), failure)]
    with ModelServer([*script, call("todo_write", todos=[]), say("done")]) as server:
        agent = build_agent(P05, server.client(retries=0), workspace=folder)
        for _ in failures:
            before = len(agent.history)
            with pytest.raises(ModelError):
                agent.run("go")
            assert len(agent.history) == before + 3
            assert_paired([message.to_openai() for message in agent.history])
        assert agent.run(None).text == "done"
