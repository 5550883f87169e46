"""Notebook 12, the capstone: hidden traces for three changes, invariants for any change, and the words of a defence.

Read `trace` first, then `CHANGES`. A trace is a fixed script put to the real agent that a student's `build` returns.
Each function of `CHANGES` and of `INVARIANTS` runs one or a few traces and raises NotYet with the property that fails.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from labkit.classroom.checks.common import (
    WRONG,
    NotYet,
    copies,
    folder,
    function_wanted,
    read,
    require,
    ten_requests,
    todo,
    update,
)
from labkit.classroom.figures import plan_distance
from labkit.clients.scripted import ScriptedModelClient, call, say
from labkit.errors import PairingError, ScriptError
from labkit.loop import Round, Settled
from labkit.messages import AssistantMessage, Message, SystemMessage, ToolMessage
from labkit.model import MessageView, ModelClient, ModelRequest
from labkit.profiles import P05, Agent, build_agent
from labkit.todos import TODO_STALE_REMINDER

VERIFY_NUDGE = (
    "Three items are completed and none of them verifies. Add an item that verifies the work, or say that you did not."
)
"""What change A says to the model."""
PLAN_BUDGET = 1500
"""The plan distance, in characters, from which change C reminds."""
LONGEST_ERROR = 600
"""So many characters may the error of change B have."""
HARNESS = (TODO_STALE_REMINDER, VERIFY_NUDGE)
CHOICES = ("A", "B", "C", "D")

Build = Callable[[ModelClient, Any], Agent]
Part = Callable[[Build], None]
_END = say("done")


class _Model(ScriptedModelClient):
    """Keeps a copy of each request as it was made, so that a history that is changed later can be seen."""

    def __init__(self, script: Iterable[Any]) -> None:
        super().__init__([*script, *[_END] * 2])  # a Stop hook may ask for one more round
        self.kept: list[tuple[Message, ...]] = []
        self.guidance: list[tuple[Message, ...]] = []

    def complete(self, request: ModelRequest) -> AssistantMessage:
        view = request.messages
        self.kept.append(tuple(view)[: len(view) - len(view.tail)])
        self.guidance.append(tuple(view.tail))
        return super().complete(request)


class Trace(NamedTuple):
    """What came of a script: for each request its guidance and all before it; rounds; the list before each and after.

    `lists[0]` is the list at the beginning, `lists[n]` the one after round n.
    """

    agent: Agent
    kept: tuple[tuple[Message, ...], ...]
    guidance: tuple[tuple[Message, ...], ...]
    rounds: tuple[Round, ...]
    lists: tuple[Any, ...]
    history: tuple[Message, ...]

    def requests_with(self, text: str) -> list[int]:
        """The numbers, from 1, of the requests whose guidance holds this text."""
        return [number for number, told in enumerate(self.guidance, 1) if copies(told, text)]

    @property
    def settled(self) -> list[Settled]:
        """Each call with its result, in order."""
        return [one for this in self.rounds for one in this.settled]

    @property
    def timeline(self) -> str:
        """The reminders in each request, a digit for a request."""
        return "".join(str(copies((*kept, *told))) for kept, told in zip(self.kept, self.guidance, strict=True))


def long_read() -> Any:
    """A call that reads a file of 1,600 characters."""
    return call("read_file", path="long.txt")


def trace(build: Build, script: Sequence[Any], prompt: str = "go") -> Trace:
    """Put a script to an agent in a fresh folder with two files, a.txt (short) and long.txt (1,600 characters)."""
    model = _Model(script)
    with folder() as place:
        (place / "long.txt").write_text("x" * 1600, encoding="utf-8")
        agent: Any = build(model, place)
        require(isinstance(agent, Agent), "returns_agent", kind=agent)
        rounds: list[Round] = []
        lists = [agent.todos]
        try:
            for one in agent.rounds(prompt):
                rounds.append(one)
                lists.append(agent.todos)
        except PairingError:
            raise NotYet("answered_once") from None
        except ScriptError:  # an agent that was built before asks the model that it was built with
            require(model.kept, "asks_the_model")
            raise
        require(model.kept, "asks_the_model")
        for one in rounds:
            require(not one.notes, "hook_failed", note=one.notes[0] if one.notes else "")
        return Trace(agent, tuple(model.kept), tuple(model.guidance), tuple(rounds), tuple(lists), tuple(agent.history))


def plain(model: ModelClient, workspace: Any) -> Agent:
    """The control: the agent without any change."""
    return build_agent(P05, model, workspace=workspace)


# ---- what two of the three changes must leave as it is ----


def reminder_as_before(build: Build) -> None:
    """The reminder of three rounds is in requests 4, 7 and 10."""
    require(trace(build, ten_requests()).timeline[:10] == "0001001001", "reminder_as_before")


# ---- A: a nudge to verify ----


def _done(*contents: str) -> list[dict[str, str]]:
    return [todo(content, "completed") for content in contents]


_THREE = ("read config.py", "fix the port", "update the notes")


def _nudged(build: Build, *script: Any) -> list[int]:
    """The requests whose guidance holds the nudge; no other words may be there."""
    seen = trace(build, [*script, _END])
    others = [one for told in seen.guidance for one in told if one.content not in HARNESS]
    require(not others, "exact_text")
    return seen.requests_with(VERIFY_NUDGE)


def nudges_after_three(build: Build) -> None:
    """Three completed items, none verifies: the nudge is in the request right after the update, and there alone."""
    found = _nudged(build, update(*_done(*_THREE)), read(), read())
    require(found, "nudges")
    require(found[0] == 2, "in_the_next_request", number=found[0])
    require(found == [2], "nudges_once")


def two_are_too_few(build: Build) -> None:
    """With two completed items and an open one there is no nudge."""
    require(not _nudged(build, update(*map(todo, _THREE))), "completed_only")
    require(not _nudged(build, update(*_done(*_THREE[:2]), todo("update the notes"))), "needs_three")


def more_than_three(build: Build) -> None:
    """Four completed items are as good a reason as three, and open items beside them change nothing."""
    require(_nudged(build, update(*_done(*_THREE, "ship"))) == [2], "more_than_three")
    require(_nudged(build, update(*_done(*_THREE), todo("ship"))) == [2], "open_items_beside")


def one_verifies(build: Build) -> None:
    """A completed item with "verif" in it, in any case, silences the nudge."""
    require(not _nudged(build, update(*_done(*_THREE, "verify the port"))), "a_verifying_item_silences")
    require(not _nudged(build, update(*_done(*_THREE, "Final VERIFICATION"))), "upper_or_lower_case")


def open_verification(build: Build) -> None:
    """An item that will verify one day does not silence the nudge."""
    require(_nudged(build, update(*_done(*_THREE), todo("verify the port"))) == [2], "only_completed_verifies")


def refused_updates(build: Build) -> None:
    """A refused update is no update: no nudge comes of it, neither for its own items nor for the old ones."""
    refused = update(*_done(*_THREE), WRONG)
    require(not _nudged(build, update(todo("read")), refused, read()), "refused_is_no_update")
    require(_nudged(build, update(*_done(*_THREE)), refused, read()) == [2], "refused_is_no_update")


def again_after_an_update(build: Build) -> None:
    """Each accepted update is judged anew."""
    found = _nudged(build, update(*_done(*_THREE)), read(), update(*_done(*_THREE)), read())
    require(found == [2, 4], "each_update_anew")


def last_list_counts(build: Build) -> None:
    """Of two updates in one message the second stands, and it is the one that is judged."""
    both = [update(*_done(*_THREE)), update(*_done(*_THREE, "verify the port"))]
    require(not _nudged(build, both), "the_list_in_force")
    require(_nudged(build, [*reversed(both), read()]) == [2], "the_list_in_force")


# ---- B: one in_progress, as a policy ----

_NO_DECISION = ("hook_execution_error", "hook_contract_error", "tool_execution_error", "invalid_tool_result")
_ONE = update(todo("wash the car", "in_progress"), todo("call Ana"))
_TWO = update(todo("wash the car", "in_progress"), todo("paint the door", "in_progress"), todo("call Ana"))


def _refusal(seen: Trace, at: int) -> str:
    """The text of a refused call that was decided and not merely broken."""
    result = seen.settled[at].result
    require(result.error is not None, "refuses_two")
    require(result.error not in _NO_DECISION and "could not be judged" not in result.content, "decides")
    return result.content


def two_are_refused(build: Build) -> None:
    """A list with two items in progress is refused, nobody is asked, and the list in force is the same object."""
    seen = trace(build, [_ONE, _TWO, _END])
    _refusal(seen, 1)
    require(seen.settled[0].result.error is None, "one_is_fine")
    require(not any(one.audit and one.audit.asked for one in seen.settled), "asks_nobody")
    require(seen.lists[1] is seen.lists[2], "same_object")


def the_error_helps(build: Build) -> None:
    """The error names the rule and the items at fault, and only those; and it stays short."""
    text = _refusal(trace(build, [_TWO, _END]), 0)
    require("in_progress" in text, "says_the_rule")
    require("wash the car" in text and "paint the door" in text, "names_the_items")
    require("call Ana" not in text, "names_only_those")
    fifty = update(*[todo(f"{number} " + "x" * 400, "in_progress") for number in range(50)])
    length = len(_refusal(trace(build, [fifty, _END]), 0))
    require(length <= LONGEST_ERROR, "short_error", length=length, most=LONGEST_ERROR)


def good_lists_pass(build: Build) -> None:
    """No item in progress, one, an empty list, and the word in a content: all accepted."""
    words = update(todo("fix the in_progress badge", "in_progress"), todo("document in_progress"))
    script = [_ONE, update(todo("wash the car")), update(), words, _END]
    one, none, empty, word = [each.result.error for each in trace(build, script).settled[:4]]
    require(one is None, "one_is_fine")
    require(none is None and empty is None, "none_is_fine")
    require(word is None, "statuses_not_words")


def the_model_can_repair(build: Build) -> None:
    """After the refusal the right list is accepted; and a good list in the same message stands."""
    seen = trace(build, [_TWO, _ONE, _END])
    _refusal(seen, 0)
    require(seen.settled[1].result.error is None, "repairs")
    seen = trace(build, [[_ONE, _TWO], _END])
    require(seen.settled[0].result.error is None and len(seen.agent.todos) == 2, "each_call_by_itself")


def other_tools_pass(build: Build) -> None:
    """The policy speaks of todo_write only."""
    found = trace(build, [read(), call("glob", pattern="*"), _END]).settled
    require(all(one.result.error is None for one in found), "other_tools_pass")


# ---- C: a reminder by plan distance ----


def _due(seen: Trace) -> list[int]:
    """The requests in which the reminder is due: so far from the plan, or from the reminder since, as the budget."""
    due, mark, plans = [], 0, 0
    for number, kept in enumerate(seen.kept, 1):
        distance = plan_distance(ModelRequest(MessageView([], kept)))
        accepted = sum(isinstance(one, ToolMessage) and one.content.startswith('{"todos":[') for one in kept)
        if accepted != plans:
            plans, mark = accepted, 0
        if distance is not None and distance - mark >= PLAN_BUDGET:
            due.append(number)
            mark = distance
    return due


def _reminded(build: Build, *script: Any) -> tuple[list[int], list[int]]:
    """The requests that hold the reminder, and those that should."""
    seen = trace(build, [*script, _END])
    require(not [one for told in seen.guidance for one in told if one.content not in HARNESS], "exact_text")
    return seen.requests_with(TODO_STALE_REMINDER), _due(seen)


_PLAN = update(todo("read", "in_progress"), todo("edit"))


def near_is_quiet(build: Build) -> None:
    """Four short rounds behind the plan there is no reminder: rounds do not count."""
    require(not _reminded(build, _PLAN, *[read()] * 4)[0], "not_by_rounds")


def no_plan_is_quiet(build: Build) -> None:
    """Where no list was ever accepted there is no distance and no reminder."""
    require(not _reminded(build, long_read(), update(WRONG), long_read(), read())[0], "no_plan_no_reminder")


def far_reminds(build: Build) -> None:
    """One long result is enough, and many short ones are, in the first request that is so far."""
    for script in ([long_read()], [read()] * 12):
        found, due = _reminded(build, _PLAN, *script)
        require(found, "reminds_when_far")
        require(found[0] <= due[0], "not_too_late", number=found[0])
        require(found[0] >= due[0], "not_too_early", number=found[0])


def behind_the_plan(build: Build) -> None:
    """What stands behind the plan in the same message counts, what stands before it does not."""
    found, due = _reminded(build, [_PLAN, long_read()])
    require(found == due, "results_in_one_message")
    found, due = _reminded(build, [long_read(), _PLAN], read())
    require(found == due, "only_what_is_behind")


def waits_again(build: Build) -> None:
    """Having reminded, it waits until the budget was used once more."""
    found, due = _reminded(build, _PLAN, long_read(), read(), read())
    require(found == due, "waits_after_it")
    found, due = _reminded(build, _PLAN, long_read(), long_read(), read(), long_read())
    require(found == due, "again_when_farther")


def update_brings_it_near(build: Build) -> None:
    """An accepted update begins anew, a refused one does not."""
    found, due = _reminded(build, _PLAN, *[read()] * 5, _PLAN, *[read()] * 5)
    require(found == due, "update_begins_anew")
    found, due = _reminded(build, _PLAN, long_read(), _PLAN, long_read(), read())
    require(found == due, "update_begins_anew")
    found, due = _reminded(build, _PLAN, *[read()] * 5, update(WRONG), *[read()] * 5)
    require(found == due, "refused_is_no_plan")


# ---- for any change ----

_MIXED: list[Any] = [
    [read(), call("no_such_tool"), call("todo_write", "{")],
    update(todo("read", "in_progress"), todo("edit")),
    [update(WRONG), read()],
    [read(), read(), read()],
    update(*_done(*_THREE)),
    [call("todo_write", todos="[]"), call("write_file", path="b.txt", content="x")],
    long_read(),
    *[read()] * 4,
    _END,
]


def answered_once(build: Build) -> None:
    """Each call has one result, right behind it and in order; counted here without the package's own check."""
    seen = trace(build, _MIXED)
    due: list[str] = []
    answered = 0
    for message in (*seen.history, None):
        if isinstance(message, ToolMessage):
            require(due and due.pop(0) == message.tool_call_id, "answered_once")
            answered += 1
            continue
        require(not due, "answered_once")
        due = [one.id for one in message.tool_calls] if isinstance(message, AssistantMessage) else []
    require(answered == sum(len(one.reply.tool_calls) for one in seen.rounds), "answered_once")


def append_only(build: Build) -> None:
    """Each request begins with all that the one before it kept, and the history ends with all of it."""
    seen = trace(build, _MIXED)
    heads = [len(one.request.messages.head) for one in seen.rounds]
    require(len(set(heads)) == 1, "append_only")
    for earlier, later in zip(seen.kept, (*seen.kept[1:], (*seen.kept[0][: heads[0]], *seen.history)), strict=True):
        require(later[: len(earlier)] == earlier, "append_only")


def one_reminder(build: Build) -> None:
    """No request holds more than one message of guidance."""
    for script in (_MIXED, ten_requests()):
        for number, told in enumerate(trace(build, script).guidance, 1):
            require(len(told) <= 1, "one_reminder", number=number, count=len(told))


def not_in_history(build: Build) -> None:
    """What was said for one request only is not in the history."""
    for script in (_MIXED, ten_requests()):
        seen = trace(build, script)
        said = {one.content for told in seen.guidance for one in told} | set(HARNESS)
        require(not any(copies(seen.history, text) for text in said), "not_in_history")


def same_object(build: Build) -> None:
    """Where every update of a round was refused, the list is the same object as before."""
    script = [update(todo("read")), update(WRONG), call("todo_write", "{"), call("todo_write", todos="[]"), _END]
    seen = trace(build, script)
    for at, one in enumerate(seen.rounds):
        errors = [each.result.error for each in one.settled if each.call.name == "todo_write"]
        require(not all(errors) or seen.lists[at + 1] is seen.lists[at], "same_object")


def isolated(build: Build) -> None:
    """An agent behaves the same whether or not another was built and used before it."""
    first = trace(build, [*_MIXED[:5], _END])
    with folder() as place:
        second = build(_Model([]), place)
        require(second is not first.agent and not len(second.todos), "isolated")
        used = trace(build, _MIXED).agent
        require(used is not second and not len(second.todos), "isolated")
    again = trace(build, [*_MIXED[:5], _END])
    require(again.guidance == first.guidance and again.history == first.history, "isolated")
    third, fourth = (trace(build, [read(), read(), _END]).guidance for _ in range(2))
    require(third == fourth, "isolated")


def still_asks(build: Build) -> None:
    """A file is not written when nobody said yes, and files can still be read."""
    read_it, write_it = trace(build, [read(), call("write_file", path="b.txt", content="x"), _END]).settled[:2]
    require(read_it.result == ("hello", None), "reads_the_workspace")
    require(write_it.result.error is not None, "still_asks")


def comes_to_an_end(build: Build) -> None:
    """A run whose model says that it is done ends as completed, with the tools of before in each request."""
    seen = trace(build, _MIXED)
    require(seen.rounds[-1].stop_reason == "completed" and len(seen.rounds) >= len(_MIXED), "comes_to_an_end")
    names = {tool.name for tool in seen.rounds[0].request.tools}
    require({"read_file", "write_file", "edit_file", "glob", "shell", "todo_write"} <= names, "tools_as_before")
    require(isinstance(seen.kept[0][0], SystemMessage), "tools_as_before")


CHANGES: dict[str, tuple[Part, ...]] = {
    "A": (
        nudges_after_three,
        two_are_too_few,
        more_than_three,
        one_verifies,
        open_verification,
        refused_updates,
        again_after_an_update,
        last_list_counts,
        reminder_as_before,
    ),
    "B": (
        two_are_refused,
        the_error_helps,
        good_lists_pass,
        the_model_can_repair,
        other_tools_pass,
        reminder_as_before,
    ),
    "C": (no_plan_is_quiet, near_is_quiet, far_reminds, behind_the_plan, waits_again, update_brings_it_near),
    "D": (),
}
INVARIANTS: tuple[Part, ...] = (
    answered_once,
    append_only,
    one_reminder,
    not_in_history,
    same_object,
    isolated,
    still_asks,
    comes_to_an_end,
)


# ---- the student's own tests ----


def tests_of(tests: Any) -> tuple[Any, ...]:
    """The own tests: a list of functions of `build`; it may be empty."""
    found = tuple(tests) if type(tests) in (list, tuple) else (tests,)
    require(all(map(callable, found)), "shape", wanted="list_of_tests")
    return found


def passes(test: Any, build: Build) -> bool:
    """Does it pass? Whatever it raises, but for what ends the whole check, is a failure."""
    try:
        test(build)
    except Exception:
        return False
    return True


def own_tests(tests: Any, change: str) -> Part:
    """The own tests as one more part: all pass, and where there is an own idea, one fails without the change."""

    def tell(build: Build) -> None:
        found = tests_of(tests)
        require(found or change != "D", "own_idea_needs_a_test")
        for test in found:
            require(passes(test, build), "own_test_passes", test=getattr(test, "__name__", "one of them"))
        require(change != "D" or not all(passes(test, plain) for test in found), "fails_without_the_change")

    return tell


# ---- the exercises ----


def check_12_1(mine: Any) -> dict[str, object]:
    """A choice, a function that builds the changed agent, and own tests: the invariants, then hidden traces."""
    keys = {"change", "build", "tests"}
    require(isinstance(mine, dict) and set(mine) == keys, "shape", wanted="dict_of_three")
    change, build = mine["change"], mine["build"]
    require(type(change) is str and change in CHOICES, "one_of_four")
    function_wanted(build)
    for part in (*INVARIANTS, *CHANGES[change], own_tests(mine["tests"], change)):
        part(build)
    return {"change": change, "traces": len(CHANGES[change]), "invariants": len(INVARIANTS)}


WORDS = 12


def check_12_2(defence: Any) -> None:
    """A title, evidence with a number and a control, and limits that say what was not shown."""
    keys = {"title", "evidence", "limits"}
    require(isinstance(defence, dict) and set(defence) == keys, "shape", wanted="dict_of_three")
    require(all(type(one) is str for one in defence.values()), "texts")
    require(defence["title"].strip(), "has_a_title")
    evidence(defence["evidence"])
    limits(defence["limits"])
    require(defence["evidence"].split() != defence["limits"].split(), "two_different_texts")


def evidence(text: str) -> None:
    """Enough words, a number, and what the same run gives without the change."""
    require(len(text.split()) >= WORDS, "evidence_in_words", count=WORDS)
    require(any(one.isdigit() for one in text), "evidence_has_a_number")
    require("without" in text.lower(), "evidence_has_a_control")


def limits(text: str) -> None:
    """Enough words, and a thing that was not shown."""
    require(len(text.split()) >= WORDS, "limits_in_words", count=WORDS)
    words = re.findall("[a-z]+", text.lower().replace("n't", " not"))
    require({"not", "no", "nobody", "nothing", "never", "only"} & set(words), "limits_say_not")
