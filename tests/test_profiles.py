"""Profiles: each adds to the one before, and one function puts an agent together."""

import inspect
from itertools import pairwise

import pytest
from helpers import Lab, plan, read

from labkit import (
    P01,
    P02,
    P03,
    P04,
    P05,
    HookAnswer,
    Hooks,
    LabkitError,
    Rule,
    ScriptedModelClient,
    SystemMessage,
    TodoItem,
    TodoTracker,
    ToolDefinition,
    ToolDefinitionError,
    ToolInput,
    ToolResult,
    UserMessage,
    build_agent,
    call,
    say,
)
from labkit.profiles import PROFILES, SYSTEM_PROMPT

FILES = ["read_file", "write_file", "edit_file", "glob"]
TOOLS = {
    P01: [],
    P02: FILES,
    P03: [*FILES, "shell"],
    P04: [*FILES, "shell"],
    P05: [*FILES, "shell", "todo_write"],
}
names = [profile.name for profile in PROFILES]


class Text(ToolInput):
    """One text."""

    text: str


ECHO = ToolDefinition("echo", "Says it again.", Text, "read", lambda given: ToolResult(given.text))


def build(profile, folder, script=(), **parts):
    """An agent of any profile, its workspace where the profile has one."""
    return build_agent(profile, ScriptedModelClient(script), workspace=folder if profile is not P01 else None, **parts)


def sent_by(profile, folder, **parts):
    """The first request of an agent."""
    model = ScriptedModelClient([say("done")])
    build_agent(profile, model, workspace=folder if profile is not P01 else None, **parts).run("go")
    return model.requests[0]


# ---- five profiles ----


def test_a_later_profile_only_adds():
    """Five profiles, chapters 1 to 5, the capabilities of each those of the one before and one more."""
    assert names == ["P01", "P02", "P03", "P04", "P05"]
    assert [profile.chapter for profile in PROFILES] == [1, 2, 3, 4, 5]
    assert [profile.title for profile in PROFILES] == ["the loop", "tools", "permissions", "hooks", "todo_write"]
    added = [later.capabilities - earlier.capabilities for earlier, later in pairwise(PROFILES)]
    assert added == [{"tools"}, {"permissions"}, {"hooks"}, {"todos"}]
    assert all(earlier.capabilities <= later.capabilities for earlier, later in pairwise(PROFILES))


@pytest.mark.parametrize("profile", PROFILES, ids=names)
def test_each_profile_has_its_tools(profile, folder):
    """The tool list of a profile, in order; P01's request has no tools at all."""
    body = sent_by(profile, folder).to_openai()
    assert [one["function"]["name"] for one in body.get("tools", ())] == TOOLS[profile]
    assert ("tools" in body) == (profile is not P01)


@pytest.mark.parametrize("profile", PROFILES, ids=names)
def test_the_system_prompt(profile, folder):
    """One prompt for all, one line more for P05; another can be given, and the line stays; "" means none."""
    line = TodoTracker.system_prompt if profile is P05 else ""
    assert sent_by(profile, folder).messages[0] == SystemMessage(SYSTEM_PROMPT + line)
    assert sent_by(profile, folder, system_prompt="Be brief.").messages[0] == SystemMessage("Be brief." + line)
    first = sent_by(profile, folder, system_prompt="").messages[0]
    assert first == (SystemMessage(line) if line else UserMessage("go"))
    assert str(folder) not in SYSTEM_PROMPT + line


def test_permissions_begin_with_p03(folder):
    """P02 writes unasked and keeps no audit; from P03 on a write is asked about, and denied if nobody answers."""
    write = call("write_file", path="b.txt", content="x")
    p02 = Lab(folder, [write, say("done")], profile=P02)
    assert p02.result.audit == ()
    assert (folder / "b.txt").read_bytes() == b"x"
    (folder / "b.txt").unlink()
    for profile in (P03, P04, P05):
        lab = Lab(folder, [write, say("done")], profile=profile)
        assert [(one.decision, one.source) for one in lab.result.audit] == [("deny", "rule")]
        assert lab.settled[0].result.error == "permission_denied"
        assert not (folder / "b.txt").exists()
        allowed = Lab(folder, [write, say("done")], profile=profile, approver=lambda ask: "allow")
        assert allowed.settled[0].result.error is None
        (folder / "b.txt").unlink()


@pytest.mark.parametrize("profile", PROFILES, ids=names)
def test_todos_are_empty_before_p05(profile, folder):
    """Every agent has `todos`; before P05 it is always empty, and todo_write is unknown from P02 on."""
    agent = build(profile, folder, [plan("ship"), say("done")])
    assert len(agent.todos) == 0
    result = agent.run("go")
    settled = result.rounds[0].settled[0]
    assert agent.todos == ((TodoItem("ship", "pending"),) if profile is P05 else ())
    assert settled.result.error == (None if profile is P05 else "unknown_tool")
    assert (result.rounds[0].before is None) == (profile is not P05)


# ---- arguments ----

USES = {
    "workspace": (P02, "."),
    "tools": (P02, (ECHO,)),
    "approver": (P03, lambda ask: "allow"),
    "rules": (P03, (Rule("none", "deny", lambda call: False),)),
    "audit": (P03, lambda record: None),
    "hooks": (P04, Hooks()),
    "todos": (P05, TodoTracker()),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("profile", PROFILES, ids=names)
def test_an_argument_that_a_profile_has_no_use_for_is_an_error_naming_both(profile, name, folder):
    """ValueError names the profile, the argument and the first profile that has a use for it."""
    first, value = USES[name]
    given = {name: folder if name == "workspace" else value}
    if profile is not P01:
        given.setdefault("workspace", folder)
    if profile.chapter >= first.chapter:
        build_agent(profile, ScriptedModelClient([]), **given)
        return
    with pytest.raises(
        ValueError, match=rf"^{profile.name} has no use for {name}=; {first.name} is the first"
    ) as caught:
        build_agent(profile, ScriptedModelClient([]), **given)
    assert not isinstance(caught.value, LabkitError)


@pytest.mark.parametrize("profile", PROFILES, ids=names)
def test_empty_parts_and_the_general_ones_fit_every_profile(profile, folder):
    """Empty lists ask for nothing; observers, a prompt and a bound on rounds go with each profile."""
    agent = build(
        profile, folder, [say("done")], tools=(), rules=[], observers=[TodoTracker()], system_prompt="x", max_rounds=1
    )
    assert agent.run("go").text == "done"


@pytest.mark.parametrize("profile", PROFILES[1:], ids=names[1:])
def test_a_workspace_is_needed_from_p02_on(profile, folder):
    """Without a workspace, or with one that is no folder, no agent is built, and the error says what to do."""
    with pytest.raises(ValueError, match=rf"^{profile.name} needs workspace="):
        build_agent(profile, ScriptedModelClient([]))
    with pytest.raises(ValueError, match="is no folder; make it first"):
        build_agent(profile, ScriptedModelClient([]), workspace=folder / "none")
    for spelt in (folder, str(folder)):
        build_agent(profile, ScriptedModelClient([]), workspace=spelt)


def test_the_front_doors_signature():
    """The names and defaults of build_agent are public and stay."""
    shown = {name: one.default for name, one in inspect.signature(build_agent).parameters.items()}
    empty = inspect.Parameter.empty
    assert shown == {
        "profile": empty,
        "model": empty,
        "workspace": None,
        "approver": None,
        "hooks": None,
        "rules": (),
        "tools": (),
        "observers": (),
        "todos": None,
        "audit": None,
        "system_prompt": None,
        "max_rounds": 20,
    }
    kinds = {one.kind for one in list(inspect.signature(build_agent).parameters.values())[2:]}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


# ---- parts ----


def test_a_tool_of_ones_own_comes_last_and_its_name_must_be_free(folder):
    """Tools given stand behind the built-in ones; a taken name is refused."""
    assert sent_by(P05, folder, tools=[ECHO]).tools[-1] is ECHO
    taken = ToolDefinition("todo_write", "Mine.", Text, "read", lambda given: ToolResult("x"))
    with pytest.raises(ToolDefinitionError, match="'todo_write' is registered already"):
        build(P05, folder, tools=[taken])
    assert sent_by(P04, folder, tools=[taken]).tools[-1] is taken


class Whisperer:
    """An observer that says who it is in each request."""

    def begin_run(self):
        pass

    def before_model(self):
        return (SystemMessage("psst"),)

    def record_tool_round(self, names):
        return ()

    def view(self):
        return "whisperer"


def test_the_tracker_is_the_first_observer(folder):
    """A Round's views are the tracker's, also with observers beside it, whose guidance comes behind."""
    lab = Lab(folder, [read(), read(), read(), say("done")], observers=[Whisperer()])
    assert lab.result.rounds[0].after.count == 1
    assert [message.content for message in lab.model.requests[3].messages[-2:]][1] == "psst"
    assert lab.reminders == [0, 0, 0, 1]
    assert Lab(folder, [say("done")], profile=P04, observers=[Whisperer()]).result.rounds[0].before == "whisperer"


class Notes(Whisperer):
    """A student's own tracker."""

    todos = ("mine",)
    tool_definition = ECHO


def test_a_tracker_of_ones_own_takes_the_place_of_p05s(folder):
    """With todos= the tool, the line and the reminder of P05 are absent, and the tracker's own are there."""
    agent_model = ScriptedModelClient([read(), read(), read(), say("done")])
    agent = build_agent(P05, agent_model, workspace=folder, todos=Notes())
    agent.run("go")
    request = agent_model.requests[3]
    assert [one.name for one in request.tools] == [*TOOLS[P04], "echo"]
    assert request.messages[0].content == SYSTEM_PROMPT
    assert request.messages[-1] == SystemMessage("psst")
    assert "TODO" not in str(request.messages)
    assert agent.todos == ("mine",)


def test_a_tracker_that_lacks_something_is_named_at_once(folder):
    """What is no tracker is refused with the names that it lacks."""
    with pytest.raises(ValueError, match="todos= takes a tracker; Whisperer lacks tool_definition, todos"):
        build(P05, folder, todos=Whisperer())
    with pytest.raises(ValueError, match="todos= takes a tracker; list lacks"):
        build(P05, folder, todos=[])


def test_a_tracker_given_to_two_agents_is_shared_and_nothing_else_is(folder):
    """Whoever gives one tracker to two agents shares one list; otherwise two builds share nothing."""
    shared = TodoTracker()
    one = build(P05, folder, [plan("ship"), say("done")], todos=shared)
    two = build(P05, folder, [say("done")], todos=shared)
    one.run("go")
    assert two.todos is one.todos
    assert len(two.history) == 0


@pytest.mark.parametrize("profile", PROFILES, ids=names)
def test_two_builds_share_nothing(profile, folder):
    """History, list, tools, audit and parts of one agent do not show in another of the same profile."""
    parts = {"hooks": Hooks(UserPromptSubmit=[lambda prompt: HookAnswer(context="hm")])} if profile.chapter >= 4 else {}
    one = build(profile, folder, [read(), plan("ship"), say("done")] if profile is not P01 else [say("done")], **parts)
    two = build(profile, folder, [say("done")])
    one.run("go")
    assert (len(two.history), len(two.todos)) == (0, 0)
    result = two.run("and you?")
    assert len(result.history) == 2
    assert result.audit == ()


def test_an_agent_goes_on_with_the_same_history(folder):
    """Calling again goes on; `rounds` and `audit` are of this run, `history` is whole."""
    agent = build(P05, folder, [read(), say("one"), read(), say("two")])
    first, second = agent.run("go"), agent.run("again")
    assert (first.text, second.text) == ("one", "two")
    assert (len(first.rounds), len(second.rounds)) == (2, 2)
    assert (len(first.audit), len(second.audit)) == (1, 1)
    assert list(second.history)[: len(first.history)] == list(first.history)
    assert agent.history == second.history
    assert len(first.history) == 4


def test_the_audit_sink_gets_each_record(folder):
    """`audit=` is called with each record, the same that the result holds."""
    kept = []
    lab = Lab(folder, [[read(), plan("ship"), call("shell", command="exit")], say("done")], audit=kept.append)
    assert tuple(kept) == lab.result.audit
    assert [(one.tool, one.decision) for one in kept] == [
        ("read_file", "allow"),
        ("todo_write", "allow"),
        ("shell", "deny"),
    ]
