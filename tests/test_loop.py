"""The loop: in which order things happen, what a request holds, what stays, and how a run ends."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import (
    P01,
    P05,
    AgentRunner,
    Ask,
    AssistantMessage,
    HookAnswer,
    Hooks,
    Round,
    RunResult,
    ScriptedModelClient,
    ScriptError,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolInput,
    ToolMessage,
    ToolRegistry,
    ToolResult,
    UserMessage,
    build_agent,
    call,
    check_pairing,
    reply,
    say,
)
from labkit.todos import TODO_STALE_REMINDER, TodoTracker


class Nothing(ToolInput):
    """No arguments."""


class Text(ToolInput):
    """One text."""

    text: str


class Replies:
    """A model that gives its replies as they are, without numbering the calls; it keeps the requests."""

    def __init__(self, replies):
        self.replies = list(replies)
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        return self.replies[len(self.requests) - 1]


def echo(given):
    """A handler that works."""
    return ToolResult(f"heard {given.text}")


def boom(given):
    """A handler that fails."""
    raise ValueError("disk full")


def registry(*more):
    """Two tools, and more."""
    return ToolRegistry(
        (
            ToolDefinition("echo", "Says it again.", Text, "read", echo),
            ToolDefinition("boom", "Always fails.", Nothing, "read", boom),
            *more,
        )
    )


def runner(model, **parts):
    """The loop with nothing around it but what a test names."""
    return AgentRunner(model, registry=parts.pop("registry", registry()), **parts)


def plan(*contents):
    """A todo_write of pending items."""
    return call("todo_write", todos=[{"content": content, "status": "pending"} for content in contents])


class Watcher:
    """An observer that whispers into each request and leaves a message after each round with calls."""

    def __init__(self):
        self.told = []

    def begin_run(self):
        self.told.append("begin")

    def before_model(self):
        self.told.append("before")
        return (SystemMessage(f"whisper {len(self.told)}"),)

    def record_tool_round(self, names):
        self.told.append(names)
        return (UserMessage(f"kept after {', '.join(names)}"),)

    def view(self):
        return len(self.told)


# ---- the order of things ----


def test_a_request_is_the_prompt_line_the_history_and_the_guidance():
    """A request is [system prompt, *history, *guidance], and the guidance is in that one request only."""
    model = ScriptedModelClient([call("echo", text="a"), say("done")])
    agent = runner(model, system_prompt="be brief", observers=[Watcher()])
    result = agent.run("go")
    first, second = model.requests
    assert list(first.messages) == [SystemMessage("be brief"), UserMessage("go"), SystemMessage("whisper 2")]
    assert list(second.messages)[:2] == [SystemMessage("be brief"), UserMessage("go")]
    assert second.messages[-1] == SystemMessage("whisper 4")
    assert not [message for message in result.history if "whisper" in message.content]
    assert not [message for message in result.history if "be brief" in message.content]


def test_after_a_round_the_history_gains_reply_results_kept_messages_then_context():
    """After a round come, in this order: the reply, its results, what observers keep, what hooks add."""
    model = ScriptedModelClient([[call("echo", text="a"), call("boom")], say("done")])
    hooks = Hooks(
        PreToolUse=[lambda prepared: HookAnswer(context=f"before {prepared.tool.name}")],
        PostToolUse=[lambda prepared, result: HookAnswer(context=f"after {prepared.tool.name}")],
    )
    result = runner(model, observers=[Watcher()], hooks=hooks).run("go")
    assert [(type(message).__name__, message.content) for message in result.history[1:]] == [
        ("AssistantMessage", ""),
        ("ToolMessage", "heard a"),
        ("ToolMessage", "Error [tool_execution_error]: ValueError: disk full"),
        ("UserMessage", "kept after echo, boom"),
        ("SystemMessage", "before echo"),
        ("SystemMessage", "after echo"),
        ("SystemMessage", "before boom"),
        ("SystemMessage", "after boom"),
        ("AssistantMessage", "done"),
    ]


def test_prompt_context_follows_the_user_message():
    """What a UserPromptSubmit hook adds stands right behind the prompt, in the history."""
    hooks = Hooks(UserPromptSubmit=[lambda prompt: HookAnswer(context=f"about {prompt}")])
    result = runner(ScriptedModelClient([say("yes")]), hooks=hooks).run("tea")
    assert list(result.history) == [UserMessage("tea"), SystemMessage("about tea"), say("yes")]


def test_observers_are_told_in_order():
    """begin_run once a run, before_model before each request, record_tool_round after a round that had calls."""
    watcher = Watcher()
    model = ScriptedModelClient([[call("echo", text="a"), call("nope")], say("one"), say("two")])
    agent = runner(model, observers=[watcher])
    agent.run("go")
    assert watcher.told == ["begin", "before", ("echo", "nope"), "before"]
    agent.run("again")
    assert watcher.told[4:] == ["begin", "before"]


def test_what_each_observer_leaves_is_kept_in_their_order():
    """Of several observers the guidance and the kept messages of all are there, the first one's first."""

    class Marked(Watcher):
        def before_model(self):
            return (SystemMessage(f"from {id(self)}"),)

        def record_tool_round(self, names):
            return (UserMessage(f"kept by {id(self)}"),)

    one, two = Marked(), Marked()
    model = ScriptedModelClient([call("echo", text="a"), say("done")])
    result = runner(model, observers=[one, two]).run("go")
    assert [message.content for message in model.requests[0].messages.tail] == [f"from {id(one)}", f"from {id(two)}"]
    assert [message.content for message in result.rounds[0].kept] == [f"kept by {id(one)}", f"kept by {id(two)}"]
    assert list(result.history)[3:5] == list(result.rounds[0].kept)


@pytest.mark.parametrize("bare", [ToolMessage("c", "x"), SystemMessage("x"), UserMessage("x"), say("x")])
def test_an_observer_that_forgets_the_brackets_is_told_so(bare):
    """One message where a sequence of them is asked for raises, and nothing of it gets into the history."""

    class Bare(Watcher):
        def record_tool_round(self, names):
            return bare

    agent = runner(ScriptedModelClient([call("echo", text="a")]), observers=[Bare()])
    with pytest.raises(TypeError):
        agent.run("go")
    assert [type(message) for message in agent.history] == [UserMessage, AssistantMessage, ToolMessage]


def test_a_stop_hook_asks_for_one_more_round_without_a_new_run():
    """A Stop hook's message joins the history as the user's, once in a run, and begin_run is not told again."""
    watcher = Watcher()
    hooks = Hooks(Stop=[lambda history: HookAnswer(message=f"check {len(history)}")])
    model = ScriptedModelClient([say("first"), say("second")])
    result = runner(model, hooks=hooks, observers=[watcher]).run("go")
    assert list(result.history) == [UserMessage("go"), say("first"), UserMessage("check 2"), say("second")]
    assert (result.text, result.stop_reason) == ("second", "completed")
    assert [one.stop_reason for one in result.rounds] == [None, "completed"]
    assert watcher.told == ["begin", "before", "before"]


def test_a_round_holds_everything(tmp_path):
    """A Round has its number, request, reply, calls with decision and result, views before and after, and the end."""
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    model = ScriptedModelClient([[call("read_file", path="a.txt"), plan("ship"), call("nope")], say("done")])
    first, last = build_agent(P05, model, workspace=tmp_path).run("go").rounds
    assert (first.number, first.stop_reason, last.number, last.stop_reason) == (1, None, 2, "completed")
    assert first.request is model.requests[0]
    assert [(one.call.name, one.decision, one.result.error) for one in first.settled] == [
        ("read_file", "allow", None),
        ("todo_write", "allow", None),
        ("nope", None, "unknown_tool"),
    ]
    assert [one.call.id for one in first.settled] == [one.id for one in first.reply.tool_calls]
    assert (first.before.todos, first.after.todos[0].content, last.before) == ((), "ship", first.after)
    assert (first.kept, first.context, first.notes) == ((), (), ())


# ---- three ways to take the same rounds ----


def taken_by_drive(agent, prompt):
    """A run taken event by event, each Ask answered yes."""
    driver, answer = agent.drive(prompt), None
    while True:
        try:
            event = driver.send(answer)
        except StopIteration as end:
            return end.value
        answer = "allow" if isinstance(event, Ask) else None


def taken_by_rounds(agent, prompt):
    """A run taken round by round."""
    rounds = agent.rounds(prompt)
    while True:
        try:
            next(rounds)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("take", [taken_by_drive, taken_by_rounds], ids=["drive", "rounds"])
def test_three_ways_give_the_same(take, tmp_path):
    """drive, rounds and run give the same history, rounds, audit and text."""
    script = [call("write_file", path="b.txt", content="x"), plan("ship"), [call("nope"), call("glob", pattern="*")]]
    script.append(say("done"))

    def agent():
        return build_agent(P05, ScriptedModelClient(script), workspace=tmp_path, approver=lambda ask: "allow")

    one, other = agent().run("go"), take(agent(), "go")
    assert list(other.history) == list(one.history)
    assert other.audit == one.audit
    assert (other.text, other.stop_reason) == (one.text, one.stop_reason) == ("done", "completed")
    assert [done.settled for done in other.rounds] == [done.settled for done in one.rounds]
    assert [list(done.request.messages) for done in other.rounds] == [
        list(done.request.messages) for done in one.rounds
    ]


def test_nothing_happens_before_the_first_next():
    """A generator that is not started has asked nobody and changed nothing; closing it then changes nothing either."""
    model, watcher = ScriptedModelClient([say("done")]), Watcher()
    agent = runner(model, observers=[watcher])
    driver, rounds = agent.drive("go"), agent.rounds("go")
    assert (model.requests, list(agent.history), watcher.told) == ((), [], [])
    driver.close()
    rounds.close()
    assert agent.run("go").text == "done"
    assert len(agent.history) == 2


def test_drive_yields_an_ask_where_a_person_decides(tmp_path):
    """An Ask names the call, its tool and the reason; "allow" by send runs it, anything else does not."""
    model = ScriptedModelClient([call("write_file", path="a.txt", content="x", id="w1"), say("done")])
    driver = build_agent(P05, model, workspace=tmp_path).drive("go")
    ask = next(driver)
    assert isinstance(ask, Ask)
    assert (ask.call.id, ask.tool.name, ask.reason) == ("w1", "write_file", "ask before files change")
    assert not (tmp_path / "a.txt").exists()
    done = driver.send("allow")
    assert isinstance(done, Round)
    assert (tmp_path / "a.txt").read_bytes() == b"x"


@pytest.mark.parametrize("answer", ["deny", None, "yes", "Allow", "allow ", True, 1, b"allow", ["allow"]], ids=repr)
def test_only_the_documented_yes_is_a_yes(answer, tmp_path):
    """Anything but the text "allow" is deny: the file is not made, and the result says so."""
    model = ScriptedModelClient([call("write_file", path="a.txt", content="x"), say("done")])
    driver = build_agent(P05, model, workspace=tmp_path).drive("go")
    next(driver)
    done = driver.send(answer)
    assert done.settled[0].result.error == "permission_denied"
    assert (done.settled[0].decision, done.settled[0].audit.asked) == ("deny", True)
    assert not (tmp_path / "a.txt").exists()


def test_with_no_approver_ask_means_deny(tmp_path):
    """rounds and run put each Ask to the approver; with none the answer is deny."""
    model = ScriptedModelClient([call("write_file", path="a.txt", content="x"), say("done")])
    result = build_agent(P05, model, workspace=tmp_path).run("go")
    assert result.rounds[0].settled[0].result.error == "permission_denied"
    assert not (tmp_path / "a.txt").exists()


# ---- closing, and going on ----


def script_with_an_ask():
    """Replies of which two make the agent ask."""
    return [
        [call("glob", pattern="*"), call("write_file", path="a.txt", content="x"), call("glob", pattern="*")],
        plan("ship"),
        call("write_file", path="b.txt", content="x"),
        say("done"),
    ]


@pytest.mark.parametrize("events", range(7))
def test_closing_at_any_point_leaves_a_paired_history_and_a_usable_agent(events, tmp_path):
    """A generator closed after any number of events, also on a pending Ask, leaves whole rounds; the agent goes on."""
    model = ScriptedModelClient([*script_with_an_ask(), *[say("later")] * 3])
    agent = build_agent(P05, model, workspace=tmp_path)
    driver, event = agent.drive("go"), None
    for _ in range(events):
        event = next(driver)
    driver.close()
    check_pairing(agent.history)
    if isinstance(event, Ask):
        assert "[cancelled]" in agent.history[-1].content
        assert not (tmp_path / "a.txt").exists()
    before = list(agent.history)
    taken_by_drive(agent, "what now?")
    check_pairing(agent.history)
    assert list(agent.history)[: len(before)] == before
    assert agent.history[len(before)] == UserMessage("what now?")


def test_a_closed_ask_cancels_this_call_and_those_behind_it(tmp_path):
    """Closing on an Ask keeps what ran before it; the asked call and all behind it are answered `cancelled`."""
    agent = build_agent(P05, ScriptedModelClient(script_with_an_ask()), workspace=tmp_path)
    driver = agent.drive("go")
    assert isinstance(next(driver), Ask)
    driver.close()
    contents = [message.content for message in agent.history if isinstance(message, ToolMessage)]
    assert contents[0] == "no file matches"
    assert [content.startswith("Error [cancelled]: ") for content in contents] == [False, True, True]


def test_a_generator_that_is_dropped_on_an_ask_leaves_a_usable_agent(tmp_path):
    """A widget that throws its generator away has closed it."""
    agent = build_agent(P05, ScriptedModelClient([*script_with_an_ask()[:1], say("fine")]), workspace=tmp_path)
    driver = agent.drive("go")
    next(driver)
    del driver
    assert agent.run("again").text == "fine"


def test_a_second_run_while_an_ask_is_pending_is_a_clear_error(tmp_path):
    """While a round is open no other may begin: the error says what to do, and the first goes on unharmed."""
    agent = build_agent(P05, ScriptedModelClient(script_with_an_ask()), workspace=tmp_path)
    driver = agent.drive("go")
    assert isinstance(next(driver), Ask)
    before = list(agent.history)
    words = r"^this agent is in the middle of a round: answer its Ask, or close that generator first$"
    for other in (agent.run, lambda prompt: next(agent.drive(prompt)), lambda prompt: next(agent.rounds(prompt))):
        with pytest.raises(RuntimeError, match=words):
            other("me too")
    assert list(agent.history) == before
    assert isinstance(driver.send("allow"), Round)
    check_pairing(agent.history)


def test_a_prompt_of_none_goes_on_without_a_new_user_message():
    """None goes on from the history, the way on after an error; there must be a history, and else a prompt is text."""
    model = ScriptedModelClient([call("echo", text="a"), ConnectionError("no line"), say("done")])
    agent = runner(model)
    with pytest.raises(ConnectionError):
        agent.run("go")
    before = list(agent.history)
    result = agent.run(None)
    assert list(result.history) == [*before, say("done")]
    assert [len(result.rounds), result.rounds[0].number] == [1, 1]
    with pytest.raises(ValueError, match=r"^there is no history to go on from; give a prompt$"):
        runner(ScriptedModelClient([])).run(None)
    with pytest.raises(TypeError, match=r"^a prompt is text, or None to go on from the history; not int$"):
        runner(ScriptedModelClient([])).drive(7)


def test_a_run_goes_on_from_the_run_before():
    """A second prompt goes on with the history; rounds and audit of a result are this run's alone."""
    agent = runner(ScriptedModelClient([call("echo", text="a"), say("one"), say("two")]))
    first, second = agent.run("go"), agent.run("and?")
    assert list(second.history) == [*first.history, UserMessage("and?"), say("two")]
    assert [len(first.rounds), len(second.rounds)] == [2, 1]
    assert second.rounds[0].number == 1


# ---- how a run ends ----


@pytest.mark.parametrize(
    ("last", "stop_reason", "text"),
    [
        (say("hello"), "completed", "hello"),
        (reply(text="hello", finish_reason=None), "completed", "hello"),
        (reply(text="", finish_reason="stop", refusal="I can't help with that."), "refusal", "I can't help with that."),
        (reply(text="half", finish_reason="content_filter"), "content_filter", "half"),
        (reply(finish_reason="content_filter"), "content_filter", ""),
        (reply(finish_reason="stop"), "empty_reply", ""),
        (reply(text=" \n", finish_reason="stop"), "empty_reply", " \n"),
        (reply(text="the first hal", finish_reason="length"), "length", "the first hal"),
    ],
)
def test_a_reply_without_calls_ends_the_run_for_its_reason(last, stop_reason, text):
    """Each end has its name and its text; only `completed` looks like success, and nothing is asked again."""
    model = ScriptedModelClient([last])
    result = runner(model).run("go")
    assert (result.stop_reason, result.text, len(model.requests)) == (stop_reason, text, 1)
    assert result.rounds[-1].stop_reason == stop_reason


def test_the_calls_of_the_last_allowed_round_are_run_and_paired():
    """max_rounds counts per run: the last round is executed whole, there is just no further request."""
    model = ScriptedModelClient([call("echo", text=text) for text in "abcde"])
    agent = runner(model, max_rounds=2)
    for prompt, heard in (("go", "b"), ("on", "d")):
        result = agent.run(prompt)
        assert (result.stop_reason, result.text, len(result.rounds)) == ("max_rounds", "", 2)
        assert result.history[-1].content == f"heard {heard}"
        check_pairing(result.history)


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "3", None], ids=repr)
def test_max_rounds_is_a_whole_number_of_at_least_one(bad):
    """An agent that could never ask is refused when it is built."""
    with pytest.raises(ValueError, match="max_rounds"):
        build_agent(P01, ScriptedModelClient([]), max_rounds=bad)


def test_max_rounds_of_one_and_a_stop_hook_end():
    """A Stop hook that asks for more in the last allowed round gets no request: the run ends `max_rounds`."""
    hooks = Hooks(Stop=[lambda history: HookAnswer(message="more")])
    result = runner(ScriptedModelClient([say("one")]), hooks=hooks, max_rounds=1).run("go")
    assert (result.stop_reason, result.text) == ("max_rounds", "one")


def test_a_hook_that_stops_answers_the_rest_and_gives_the_stopping_result():
    """hook_stopped: the calls left get their answers, the text is the result at which the hook stopped."""
    ran = []
    hooks = Hooks(PostToolUse=[lambda prepared, result: ran.append(prepared.input.text) or HookAnswer(stop=True)])
    model = ScriptedModelClient([[call("nope"), call("echo", text="a"), call("echo", text="b")], say("never")])
    watcher = Watcher()
    result = runner(model, hooks=hooks, observers=[watcher]).run("go")
    assert (result.stop_reason, result.text, ran) == ("hook_stopped", "heard a", ["a"])
    assert [one.result.error for one in result.rounds[0].settled] == ["unknown_tool", None, "hook_stopped"]
    assert ("nope", "echo", "echo") in watcher.told
    check_pairing(result.history)


def test_a_hook_may_give_the_stopping_call_the_loops_own_code():
    """Where no result tells why the run was stopped, its text is empty."""
    hooks = Hooks(PostToolUse=[lambda prepared, result: HookAnswer(output=ToolResult("x", "hook_stopped"), stop=True)])
    result = runner(ScriptedModelClient([call("echo", text="a"), say("never")]), hooks=hooks).run("go")
    assert (result.stop_reason, result.text) == ("hook_stopped", "")


def test_a_run_ends_after_twenty_rounds_unless_told_otherwise():
    """The bound that a runner has by itself."""
    result = runner(ScriptedModelClient([call("echo", text="a")] * 30)).run("go")
    assert (result.stop_reason, len(result.rounds)) == ("max_rounds", 20)


def test_each_round_has_the_notes_of_its_own():
    """What went wrong without stopping anything stands in the round in which it did, each time."""

    def broken(prepared, result):
        raise ValueError("no line")

    model = ScriptedModelClient([call("echo", text="a"), call("echo", text="b"), say("done")])
    result = runner(model, hooks=Hooks(PostToolUse=[broken])).run("go")
    note = "hook_execution_error: the PostToolUse hook 'broken' raised ValueError: no line"
    assert [one.notes for one in result.rounds] == [(note,), (note,), ()]


def test_without_a_policy_nobody_decides():
    """A call that no policy judged has no audit entry and no decision."""
    result = runner(ScriptedModelClient([call("echo", text="a"), say("done")])).run("go")
    ((settled,),) = [one.settled for one in result.rounds if one.settled]
    assert (settled.audit, settled.decision, result.audit) == (None, None, ())


def test_a_script_that_ran_out_names_the_number_of_requests():
    """The scripted model says how many requests were made; the history is as before that request."""
    agent = runner(ScriptedModelClient([call("echo", text="a")]))
    with pytest.raises(ScriptError, match="request 2") as caught:
        agent.run("go")
    assert caught.value.requests == 2
    check_pairing(agent.history)
    assert isinstance(agent.history[-1], ToolMessage)


def test_calls_decide_and_finish_reason_does_not():
    """A reply with calls goes on whatever its finish_reason or refusal says."""
    for finish_reason in ("stop", "tool_calls", None, "content_filter", "made up"):
        model = ScriptedModelClient([reply(calls=[call("echo", text="a")], finish_reason=finish_reason), say("done")])
        result = runner(model).run("go")
        assert (result.text, result.history[2].content) == ("done", "heard a"), finish_reason


def test_a_cut_off_reply_runs_nothing_and_goes_on():
    """finish_reason "length" with calls: each is answered `truncated`, no handler, hook or audit; the run goes on."""
    seen = []
    hooks = Hooks(PreToolUse=[seen.append], PostToolUse=[lambda *both: seen.append(both)])
    cut = reply(calls=[call("echo", text="a"), call("nope"), call("echo", '{"te')], finish_reason="length")
    result = runner(ScriptedModelClient([cut, say("done")]), hooks=hooks).run("go")
    assert [one.result.error for one in result.rounds[0].settled] == ["truncated"] * 3
    assert (seen, result.audit, result.stop_reason) == ([], (), "completed")
    assert "cut off" in result.history[2].content


@pytest.mark.parametrize("bad", [None, "hello", {"role": "assistant"}, 7], ids=repr)
def test_a_model_client_that_returns_no_message_is_an_error_and_loses_nothing(bad):
    """Whatever a broken client returns, the run ends in an exception and the agent stays usable."""
    model = Replies([bad, say("fine")])
    agent = runner(model)
    with pytest.raises(TypeError, match=f"^a model client returns an AssistantMessage, not {type(bad).__name__}$"):
        agent.run("go")
    assert list(agent.history) == [UserMessage("go")]
    assert agent.run(None).text == "fine"


# ---- ids ----


@pytest.mark.parametrize(
    "ids", [["", ""], ["a", "a"], ["a", "", "a"], ["", "call_1_0"], ["a", "a", "a_1_1", "a_1_1"], [None, "x"]], ids=str
)
def test_missing_and_repeated_ids_are_made_unique_the_same_way_each_run(ids):
    """Ids that a server left out or gave twice are made unique inside their message, equal on every run."""

    def history():
        calls = tuple(ToolCall(id, "echo", '{"text":"a"}') for id in ids)
        agent = runner(Replies([AssistantMessage("", calls), say("done")]))
        agent.run("go")
        return list(agent.history)

    first, second = history(), history()
    assert first == second
    made = [one.id for one in first[1].tool_calls]
    assert len(set(made)) == len(ids)
    assert "" not in made
    kept = [id for at, id in enumerate(ids) if id and id not in ids[:at]]
    assert [id for id in made if id in ids] == kept
    check_pairing(first)


@pytest.mark.parametrize(
    ("ids", "made"),
    [
        (["", "a", ""], ["call_1_0", "a", "call_1_2"]),
        (["a", "a"], ["a", "a_1_1"]),
        (["", "call_1_0", "call_1_0_"], ["call_1_0__", "call_1_0", "call_1_0_"]),
        (["a", "a", "a_1_1", "a_1_1"], ["a", "a_1_1_", "a_1_1", "a_1_1_1_3"]),
    ],
    ids=str,
)
def test_a_made_id_tells_its_place(ids, made):
    """It is the given id or `call`, the message's place and the call's, and underscores while that is taken."""
    calls = tuple(ToolCall(id, "echo", '{"text":"a"}') for id in ids)
    result = runner(Replies([AssistantMessage("", calls), say("done")])).run("go")
    assert [one.id for one in result.history[1].tool_calls] == made


def test_ids_may_come_again_in_another_message():
    """A server that counts from one in each message is left alone."""
    again = AssistantMessage("", (ToolCall("c1", "echo", '{"text":"a"}'),))
    agent = runner(Replies([again, again, say("done")]))
    agent.run("go")
    assert [message.tool_call_id for message in agent.history if isinstance(message, ToolMessage)] == ["c1", "c1"]


# ---- for all scripts ----

one_call = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b", "c"]),
    st.sampled_from(["echo", "boom", "todo_write", "nope", ""]),
    st.sampled_from(["", "{}", '{"text":"a"}', '{"todos":[]}', '{"text":', "null", '{"text":"\\ud800"}', "\udcb0"]),
)
one_reply = st.builds(
    AssistantMessage,
    st.sampled_from(["", "words", "\udcb0"]),
    st.lists(one_call, max_size=4).map(tuple),
    st.sampled_from([None, "stop", "tool_calls", "length", "content_filter"]),
    st.sampled_from([None, None, "no"]),
)


def agent_over(replies, **parts):
    """A runner with a tracker over replies as they are, and the model."""
    tracker = TodoTracker()
    model = Replies([*replies, *[say("end")] * 3])
    tools = registry(tracker.tool_definition)
    return model, runner(model, registry=tools, system_prompt="sys", observers=[tracker], **parts)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(one_reply, max_size=5), min_size=1, max_size=3))
def test_for_any_script_history_only_grows_and_every_request_is_paired(runs):
    """For all scripts: request k+1 starts with request k's history, is paired and UTF-8; guidance passes."""
    model, agent = agent_over([one for replies in runs for one in replies])
    sent = []
    for number in range(len(runs)):
        agent.run(f"prompt {number} \udcb0")
        check_pairing(agent.history)
    for request in model.requests:
        messages = list(request.messages)
        guidance = [message for message in messages if message.content == TODO_STALE_REMINDER]
        assert guidance == messages[len(messages) - len(guidance) :]
        stays = messages[: len(messages) - len(guidance)]
        assert stays[: len(sent)] == sent
        sent = stays
        check_pairing(stays)
        json.dumps(request.to_openai()["messages"], ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert [sent[0], *agent.history][: len(sent)] == sent
    assert TODO_STALE_REMINDER not in [message.content for message in agent.history]


@settings(deadline=None, max_examples=80)
@given(st.lists(one_reply, max_size=6))
def test_for_any_script_recorded_requests_behave_as_deep_copies(replies):
    """What was recorded of a request never changes, whatever the run does after it."""
    copies = []

    class Copying(Replies):
        def complete(self, request):
            copies.append(copy.deepcopy(list(request.messages)))
            return super().complete(request)

    model, agent = agent_over(replies)
    agent._model = model = Copying(model.replies)
    agent.run("go")
    agent.run("go on")
    assert [list(request.messages) for request in model.requests] == copies
    assert [len(request.messages) for request in model.requests] == [len(one) for one in copies]


@settings(deadline=None, max_examples=80)
@given(st.lists(one_reply, max_size=6))
def test_for_any_script_each_call_has_one_result_and_the_rounds_tell_the_history(replies):
    """For all scripts the rounds hold, call by call, what the history holds, and only the last has a stop reason."""
    _, agent = agent_over(replies)
    result = agent.run("go")
    told = []
    for done in result.rounds:
        told += [done.reply, *[ToolMessage(one.call.id, one.result.content) for one in done.settled]]
        assert [one.call for one in done.settled] == list(done.reply.tool_calls)
        told += [*done.kept, *done.context]
    assert [UserMessage("go"), *told] == list(result.history)
    assert [done.number for done in result.rounds] == list(range(1, len(result.rounds) + 1))
    assert [done.stop_reason for done in result.rounds[:-1]] == [None] * (len(result.rounds) - 1)
    assert result.rounds[-1].stop_reason == result.stop_reason
    assert isinstance(result, RunResult)


def test_a_recorded_request_cannot_be_changed():
    """A request's messages are a view without a way to change it; what a caller makes of it is his own."""
    model = ScriptedModelClient([call("echo", text="a"), say("done")])
    result = runner(model).run("go")
    view = model.requests[0].messages
    with pytest.raises(TypeError):
        view[0] = SystemMessage("other")
    assert not hasattr(view, "append")
    with pytest.raises(AttributeError):
        result.history[0].content = "other"
    model.requests[1].to_openai()["messages"].clear()
    assert len(model.requests[1].messages) == 3
