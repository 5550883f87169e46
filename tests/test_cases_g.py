"""Hooks and permissions: inputs that broke other people's products, each as its whole kind, by its number."""

import pytest
from helpers import Lab, plan, read

from labkit import HookAnswer, Hooks, Rule, ScriptedModelClient, ScriptError, build_agent, call, say
from labkit.profiles import P05

# ---- D-g1 ----


def answers(value):
    """A hook that returns this."""

    def guard(*seen):
        return value

    return guard


def raises(error):
    """A hook that raises this."""

    def guard(*seen):
        raise error

    return guard


BROKEN = [
    (raises(KeyError("rules")), "hook_execution_error"),
    (raises(TimeoutError()), "hook_execution_error"),
    (raises(RecursionError("deep")), "hook_execution_error"),
    (lambda: None, "hook_execution_error"),
    (answers("maybe"), "hook_contract_error"),
    (answers("allow"), "hook_contract_error"),
    (answers(True), "hook_contract_error"),
    (answers({"recommend": "allow"}), "hook_contract_error"),
    (answers(HookAnswer), "hook_contract_error"),
    (answers(HookAnswer(recommend="maybe")), "hook_contract_error"),
    (answers(HookAnswer(recommend="Deny")), "hook_contract_error"),
    (answers(HookAnswer(recommend=False)), "hook_contract_error"),
    (answers(HookAnswer(deny=True)), "hook_contract_error"),
    (answers(HookAnswer(deny=ValueError("no"))), "hook_contract_error"),
    (answers(HookAnswer(arguments=7)), "hook_contract_error"),
    (answers(HookAnswer(arguments={"path": object()})), "hook_contract_error"),
    (answers(HookAnswer(arguments={"path": 7})), "hook_contract_error"),
    (answers(HookAnswer(context=7)), "hook_contract_error"),
    (answers(HookAnswer(stop=True)), "hook_contract_error"),
    (answers(HookAnswer(message="go on")), "hook_contract_error"),
    (answers(HookAnswer(output="x")), "hook_contract_error"),
]


@pytest.mark.parametrize(("guard", "code"), BROKEN, ids=range(len(BROKEN)))
def test_d_g1_a_broken_guard_lets_nothing_through(guard, code, folder):
    """D-g1: a PreToolUse hook that raises or answers nonsense blocks its call, by name; other calls get their own."""

    def only_writes(prepared):
        return guard(prepared) if prepared.tool.name == "write_file" else None

    hooks = Hooks(PreToolUse=[guard if guard.__name__ == "<lambda>" else only_writes])
    write = call("write_file", path="a.txt", content="new")
    lab = Lab(folder, [[write, plan("ship")], say("done")], hooks=hooks, approver=lambda ask: "allow")
    text = lab.settled[0].result.content
    assert lab.settled[0].result.error == code
    assert "write_file was not run: the PreToolUse hook" in text or "a PreToolUse hook" in text
    assert (folder / "a.txt").read_bytes() == b"hello\n"
    assert lab.result.text == "done"
    if guard.__name__ != "<lambda>":
        assert (lab.settled[1].result.error, lab.agent.todos[0].content) == (None, "ship")
        assert [record.tool for record in lab.result.audit] == ["todo_write"]


def test_d_g1_none_is_nothing_to_say_and_the_policy_decides(folder):
    """D-g1: a hook that returns None allows nothing by that: the policy asks as it would have."""
    hooks = Hooks(PreToolUse=[answers(None)])
    lab = Lab(folder, [call("write_file", path="a.txt", content="new"), say("done")], hooks=hooks)
    assert lab.settled[0].result.error == "permission_denied"
    assert (folder / "a.txt").read_bytes() == b"hello\n"


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
@pytest.mark.parametrize(
    "guard",
    [raises(KeyError("x")), answers("maybe"), answers(HookAnswer(deny="no")), answers(HookAnswer(recommend="allow"))],
)
def test_d_g1_any_other_broken_hook_loses_nothing_and_shows(event, guard, folder):
    """D-g1: the run ends as it would have, and the failure is in a round's notes, by event and hook."""
    lab = Lab(folder, [read(), say("done")], hooks=Hooks(**{event: [guard]}))
    (note,) = [note for done in lab.result.rounds for note in done.notes]
    assert f"the {event} hook 'guard'" in note
    assert (lab.result.text, lab.result.stop_reason, lab.settled[0].result.content) == ("done", "completed", "hello\n")


@pytest.mark.parametrize("matcher", [raises(KeyError("x")), lambda: True, lambda prepared: prepared.nothing])
def test_d_g1_a_rule_whose_matcher_raises_denies(matcher, folder):
    """D-g1: a rule that cannot be judged denies the call, and is named."""
    lab = Lab(folder, [[plan("ship"), read()], say("done")], rules=[Rule("no secrets", "allow", matcher)])
    assert [one.result.error for one in lab.settled] == ["permission_denied"] * 2
    assert "no secrets could not be judged" in lab.settled[0].result.content
    assert lab.agent.todos == ()


@pytest.mark.parametrize("decision", ["maybe", "Deny", "", None, True, 1], ids=repr)
def test_d_g1_a_rule_without_a_decision_is_refused_when_it_is_made(decision):
    """D-g1: a rule that decides neither allow, ask nor deny is the programmer's error, at once."""
    with pytest.raises(ValueError, match="no decision"):
        Rule("odd", decision, lambda prepared: True)


# ---- D-g2 ----

COMMANDS = [
    "git status && touch out.txt",
    "git status; touch out.txt",
    "git status $(touch out.txt)",
    "git status `touch out.txt`",
    "git statusfoo",
    "git status\ntouch out.txt",
    "git status | tee out.txt",
    "git status > out.txt",
    "git status",
    "touch out.txt",
    "",
]


def safe_prefix(prepared):
    """The rule that people write: this command looks safe from its beginning."""
    return prepared.tool.name == "shell" and prepared.input.command.startswith("git status")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("voice", ["rule", "hook"])
def test_d_g2_a_shell_command_is_always_asked(command, voice, folder):
    """D-g2: no rule and no hook makes a command safe: each is asked by itself, and unasked nothing runs."""
    parts = {
        "rule": {"rules": [Rule("allow git status", "allow", safe_prefix)]},
        "hook": {"hooks": Hooks(PreToolUse=[lambda prepared: HookAnswer(recommend="allow")])},
    }[voice]
    lab = Lab(folder, [call("shell", command=command), say("done")], **parts)
    assert lab.settled[0].result.error == "permission_denied"
    assert [(record.decision, record.asked, record.source) for record in lab.result.audit] == [("deny", True, "effect")]
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt"]


def test_d_g2_each_command_is_asked_by_itself(folder):
    """D-g2: a yes to one command is no yes to the next, not even to the same."""
    asked = []

    def approver(ask):
        asked.append(ask.call.arguments)
        return "allow" if len(asked) == 1 else "deny"

    command = call("shell", command="echo x >> out.txt")
    lab = Lab(folder, [[command, command], command, say("done")], approver=approver)
    assert [one.result.error for one in lab.settled] == [None, "permission_denied", "permission_denied"]
    assert len(asked) == 3
    assert (folder / "out.txt").read_text(encoding="utf-8") == "x\n"


# ---- D-g3 ----


@pytest.mark.parametrize("max_rounds", [1, 2, 20])
def test_d_g3_a_stop_hook_that_never_agrees_is_heard_once(max_rounds, folder):
    """D-g3: it gets one more round in a run, or none at the limit; then the run ends and says so."""
    hooks = Hooks(Stop=[lambda history: HookAnswer(message="not yet")])
    lab = Lab(folder, [say(f"text {number}") for number in range(50)], hooks=hooks, max_rounds=max_rounds)
    assert len(lab.model.requests) == min(2, max_rounds)
    if max_rounds == 1:
        assert lab.result.stop_reason == "max_rounds"
    else:
        assert lab.result.stop_reason == "completed"
        assert "once in a run" in lab.result.rounds[-1].notes[0]
    lab.agent.run("again")
    assert len(lab.model.requests) == 2 * min(2, max_rounds)


def test_d_g3_a_stop_hook_behind_tool_rounds_is_heard_once_too(folder):
    """D-g3: rounds with calls between do not give it a second voice."""
    hooks = Hooks(Stop=[lambda history: HookAnswer(message="not yet")])
    lab = Lab(folder, [say("one"), read(), say("two"), say("never")], hooks=hooks)
    assert (lab.result.text, len(lab.model.requests)) == ("two", 3)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_d_g3_a_script_that_runs_out_says_how_many_requests_were_made(length, folder):
    """D-g3: no IndexError, but a ScriptError with the number of requests."""
    agent = build_agent(P05, ScriptedModelClient([read()] * length), workspace=folder)
    with pytest.raises(ScriptError, match=f"this was request {length + 1}") as caught:
        agent.run("go")
    assert caught.value.requests == length + 1
