"""May this call run? Candidates, the strictest, and the one audit entry."""

from itertools import product

import pytest
from helpers import Lab, plan, read
from hypothesis import given
from hypothesis import strategies as st

from labkit import (
    P03,
    Ask,
    AuditRecord,
    HookAnswer,
    Hooks,
    PermissionPolicy,
    Rule,
    ToolCall,
    ToolDefinition,
    ToolInput,
    ToolRegistry,
    ToolResult,
    Workspace,
    call,
    reply,
    say,
)

DECISIONS = ("allow", "ask", "deny")


class Where(ToolInput):
    """A path."""

    path: str


def tool(effect="external", path=None, name="touch"):
    """A tool of this effect."""
    return ToolDefinition(name, "For a test.", Where, effect, lambda given: ToolResult("touched"), path=path)


def judged(folder, effect, where="a.txt", path=None, recommended=None, rules=(), name="touch"):
    """What a policy with these rules says of one call."""
    registry = ToolRegistry((tool(effect, path, name),))
    prepared = registry.prepare(ToolCall("c1", name, f'{{"path":"{where}"}}'))
    return PermissionPolicy(Workspace(folder), tuple(rules)).judge(prepared, recommended)


def rule(decision, name="a rule"):
    """A rule for every call."""
    return Rule(name, decision, lambda prepared: True)


@pytest.mark.parametrize("effect", ["read", "write", "external"])
def test_no_candidate_means_allow(effect, folder):
    """Where nothing speaks about a call it is allowed, and the source says that nobody did."""
    record = judged(folder, effect)
    assert record[4:] == ("allow", "default", "nothing speaks against it", False)
    assert (record.call_id, record.tool, record.effect, record.arguments) == ("c1", "touch", effect, '{"path":"a.txt"}')


def test_execute_asks(folder):
    """An effect `execute` asks, whatever the tool."""
    assert judged(folder, "execute")[4:] == ("ask", "effect", "it runs a command on this machine", False)


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
def test_the_built_in_rule_names_two_tools(name, folder):
    """Exactly write_file and edit_file are asked about by rule."""
    assert judged(folder, "write", name=name)[4:6] == ("ask", "rule")
    assert judged(folder, "write", name=name + "s")[4:6] == ("allow", "default")


def test_a_write_outside_is_denied_and_nothing_loosens_it(folder):
    """The boundary is the policy's: a write to a path outside is denied whatever rules and hooks say."""
    record = judged(folder, "write", "../x", lambda given: given.path, "allow", [rule("allow")])
    assert (record.decision, record.source) == ("deny", "workspace")
    assert "'..'" in record.reason


def test_a_path_that_cannot_be_told_is_denied(folder):
    """A tool whose `path` raises or gives no text cannot show where it writes: denied."""
    for broken, kind in (
        (lambda given: given.nothing, "AttributeError"),
        (lambda given: 7, "TypeError"),
        (lambda given: 1 / 0, "ZeroDivisionError"),
    ):
        reason = f"where it would write cannot be told ({kind})"
        assert judged(folder, "write", path=broken)[4:] == ("deny", "workspace", reason, False)


def test_a_rule_that_raises_denies_whatever_the_others_say(folder):
    """A rule that cannot be judged is a deny of its own, named with what was raised; the rest still speak."""
    broken = Rule("no secrets", "allow", lambda prepared: 1 / 0)
    record = judged(folder, "external", rules=[rule("ask"), broken, rule("allow")])
    assert record[4:] == ("deny", "rule", "no secrets could not be judged (ZeroDivisionError)", False)


def test_a_read_outside_is_the_tools_to_refuse(folder):
    """The boundary candidate is for the effect `write` alone."""
    assert judged(folder, "read", "../x", lambda given: given.path).decision == "allow"


@given(st.lists(st.sampled_from(DECISIONS), max_size=4), st.sampled_from([None, *DECISIONS]), st.booleans())
def test_the_strictest_wins(folder, rules, recommended, execute):
    """For any rules, recommendation and effect: deny over ask over allow, in whatever order they speak."""
    voices = [*rules, *([recommended] if recommended else []), *(["ask"] if execute else [])]
    record = judged(folder, "execute" if execute else "external", recommended=recommended, rules=map(rule, rules))
    assert record.decision == max(voices, key=DECISIONS.index, default="allow")
    assert (record.source == "default") == (not voices)


def test_among_equals_the_first_of_the_contract_speaks(folder):
    """Workspace, effect, hook, rules: the reason is that of the first that is as strict."""
    assert judged(folder, "execute", recommended="ask", rules=[rule("ask")]).source == "effect"
    assert judged(folder, "external", recommended="deny", rules=[rule("deny")]).source == "hook"
    assert judged(folder, "external", rules=[rule("ask", "one"), rule("ask", "two")]).reason == "one"


@pytest.mark.parametrize(("hook", "by_rule"), list(product([None, *DECISIONS], repeat=2)))
def test_hook_and_rule_through_the_loop(hook, by_rule, folder):
    """What runs is what the strictest allows; ask reaches the approver once, and each call has one entry."""
    asked = []
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(recommend=hook)]) if hook else None
    rules = [rule(by_rule)] if by_rule else []
    strictest = max(filter(None, [hook, by_rule]), key=DECISIONS.index, default="allow")
    approver = lambda ask: asked.append(ask) or "allow"  # noqa: E731
    lab = Lab(folder, [plan("ship"), say("done")], hooks=hooks, rules=rules, approver=approver)
    (record,) = lab.result.audit
    assert record.decision == ("deny" if strictest == "deny" else "allow")
    assert len(asked) == record.asked == (strictest == "ask")
    assert bool(lab.agent.todos) == (strictest != "deny")
    assert lab.settled[0].audit is record


def test_todo_write_asks_nobody(folder):
    """todo_write has effect `write`, no path and no rule: no prompt, one entry with source `default`."""
    asked = []
    lab = Lab(folder, [plan("ship"), say("done")], approver=asked.append)
    assert (asked, len(lab.result.audit), lab.result.audit[0].source) == ([], 1, "default")


def test_what_never_reaches_permission_leaves_no_entry(folder):
    """Refusals by prepare, a hook's own denial and a cut-off call are in no audit."""
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(deny="no") if prepared.tool.name == "glob" else None])
    script = [
        [call("nope"), call("read_file", "{"), call("read_file", "{}"), call("glob", pattern="*")],
        reply(calls=[read()], finish_reason="length"),
        say("done"),
    ]
    lab = Lab(folder, script, hooks=hooks)
    assert [one.result.error for one in lab.settled] == [
        "unknown_tool",
        "invalid_json",
        "invalid_arguments",
        "hook_denied",
        "truncated",
    ]
    assert lab.result.audit == ()
    assert {one.decision for one in lab.settled} == {None}


def test_the_sink_gets_each_record_before_the_tool_runs(folder):
    """The sink is called with each record, settled, before its call runs; the result holds the same records."""
    seen = []

    def sink(record):
        seen.append((record, (folder / "b.txt").exists()))

    script = [[call("write_file", path="b.txt", content="x"), read()], say("done")]
    lab = Lab(folder, script, audit=sink, approver=lambda ask: "allow")
    assert seen == [(lab.result.audit[0], False), (lab.result.audit[1], True)]
    assert [(record.decision, record.asked) for record in lab.result.audit] == [("allow", True), ("allow", False)]


def test_a_sink_that_is_an_empty_list_is_a_sink(folder):
    """A sink is called whatever it says of its own truth."""

    class Sink(list):
        __call__ = list.append

    sink = Sink()
    lab = Lab(folder, [read(), say("done")], audit=sink)
    assert sink == list(lab.result.audit) != []


def test_an_approver_that_is_empty_is_an_approver(folder):
    """An approver is asked whatever it says of its own truth."""

    class Approver(list):
        def __call__(self, ask):
            return "allow"

    lab = Lab(folder, [call("write_file", path="b.txt", content="x"), say("done")], approver=Approver())
    assert lab.settled[0].decision == "allow"


class Odd:
    """An answer that cannot be compared."""

    def __eq__(self, other):
        raise ValueError("neither yes nor no")

    __hash__ = None


class Agreeable:
    """An answer that equals everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize("answer", [None, "", "deny", "ALLOW", "allowed", "y", True, 1, Odd(), Agreeable(), object()])
def test_anything_but_the_documented_yes_is_deny(answer, folder):
    """A missing or unclear answer is deny: not run, said as nobody's yes, one entry."""
    write = call("write_file", path="b.txt", content="x")
    lab = Lab(folder, [write, say("done")], approver=lambda ask: answer)
    assert lab.settled[0].result.error == "permission_denied"
    assert "(nobody said yes)" in lab.settled[0].result.content
    assert not (folder / "b.txt").exists()


def test_the_question_says_what_will_run(folder):
    """An Ask holds the call as hooks left it, its tool and the reason."""
    asked = []
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(arguments={"path": "c.txt", "content": "y"})])
    script = [call("write_file", path="b.txt", content="x", id="w"), say("done")]
    lab = Lab(folder, script, hooks=hooks, approver=lambda ask: asked.append(ask) or "allow")
    (ask,) = asked
    assert isinstance(ask, Ask)
    assert (ask.call.id, ask.call.name, ask.tool.name) == ("w", "write_file", "write_file")
    assert ask.call.arguments == '{"path": "c.txt", "content": "y"}' == lab.result.audit[0].arguments
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "c.txt"]


def test_a_record_is_settled_to_allow_or_deny(folder):
    """Whoever was asked, the record ends as allow or deny and says that somebody was asked."""
    record = AuditRecord("c", "shell", "execute", "{}", "ask", "effect", "it runs")
    assert record.settled("allow")[4:] == ("allow", "effect", "it runs", True)
    assert record.settled("no")[4:] == ("deny", "effect", "it runs", True)
    assert record.decision == "ask"


def test_a_denial_names_the_rule_and_stays_utf8(folder):
    """A denial is paired and says which rule; a rule's name that UTF-8 cannot hold poisons nothing."""
    lab = Lab(folder, [read(), say("done")], rules=[rule("deny", "no \ud800 reading")], profile=P03)
    assert lab.settled[0].result.content == (
        "Error [permission_denied]: read_file was not run (denied): no \ufffd reading."
    )


def test_an_audit_that_failed_stands_in_the_runs_own_record(folder):
    """The entry of a call whose sink raised says deny, by the audit, and what was raised."""

    def full(record):
        raise OSError("disk full")

    lab = Lab(folder, [read(), say("done")], audit=full)
    (record,) = lab.result.audit
    assert (record.decision, record.source, record.reason) == ("deny", "audit", "the audit sink raised OSError")
    assert lab.result.rounds[0].settled[0].audit == record


def test_a_rule_without_a_decision_is_told_the_decisions():
    """The error of a wrong rule names the rule, what was given and what there is."""
    with pytest.raises(ValueError, match=r"rule 'x': 'maybe' is no decision; use one of \('allow', 'ask', 'deny'\)"):
        Rule("x", "maybe", lambda prepared: True)
