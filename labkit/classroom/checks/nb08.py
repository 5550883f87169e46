"""Notebook 08, the fourth request: counting, reminding, breaking it, deciding, and tests for the reminder.

The properties of exercise 08.3 are at the top: each is a function that says whether it holds for a tracker class.
"""

from collections.abc import Callable
from typing import Any

from labkit.classroom.checks.broken import judge_tests
from labkit.classroom.checks.common import (
    WRONG,
    Ran,
    copies,
    line,
    read,
    require,
    run,
    ten_requests,
    todo,
    tracker_wanted,
    update,
)
from labkit.clients.scripted import say
from labkit.todos import TODO_STALE_REMINDER, TodoTracker

REMINDER_MUTANTS = (
    "counts_calls",
    "never_clears",
    "clears_on_text",
    "reminder_stored",
    "one_round_late",
    "update_ignored",
    "refused_update_ignored",
    "shared_count",
)


def _run(make: Callable[[], Any], script: list[Any]) -> Ran:
    return run(script, todos=make())


def _reads(count: int) -> list[Any]:
    return [read() for _ in range(count)]


# ---- the properties ----


def fourth_request(make: Callable[[], Any]) -> bool:
    """After three rounds of other tools, the fourth request is the first to hold a reminder."""
    return line(_run(make, [*_reads(3), say("done")]).requests) == "0001"


def clears_itself(make: Callable[[], Any]) -> bool:
    """Having reminded, it waits for three more rounds."""
    return line(_run(make, ten_requests()).requests)[4:6] == "00"


def rounds_not_calls(make: Callable[[], Any]) -> bool:
    """Three calls in one message count as one round."""
    return "1" not in line(_run(make, [_reads(3), _reads(3), say("done")]).requests)


def update_clears(make: Callable[[], Any]) -> bool:
    """A round with todo_write begins the count anew."""
    return "1" not in line(_run(make, [*_reads(2), update(todo("ship")), *_reads(2), say("done")]).requests)


def not_in_history(make: Callable[[], Any]) -> bool:
    """The history holds no reminder."""
    return copies(_run(make, ten_requests()).result.history) == 0


def text_changes_nothing(make: Callable[[], Any]) -> bool:
    """A reply of text neither counts nor clears: two rounds, a text, and the count is still 2."""
    rounds = _run(make, [*_reads(2), say("done")]).result.rounds
    return bool(rounds[-1].after.count == 2)


PROPERTIES: dict[str, Callable[[Callable[[], Any]], bool]] = {
    "fourth_request": fourth_request,
    "clears_itself": clears_itself,
    "rounds_not_calls": rounds_not_calls,
    "update_clears": update_clears,
    "not_in_history": not_in_history,
    "text_changes_nothing": text_changes_nothing,
}


# ---- the exercises ----


def check_08_1(tracker_class: Any) -> None:
    """record_tool_round: rounds are counted, by the names of their calls."""
    tracker_wanted(tracker_class).record_tool_round(("read_file",))
    require(tracker_class().count == 0, "own_count")

    def counts(script: list[Any]) -> list[int]:
        tracker = tracker_class()
        ran = run([*script, say("done")], todos=tracker)
        require(len(ran.result.history) == 2 + sum(1 + _calls(one) for one in script), "keeps_nothing")
        return [one.after.count for one in ran.result.rounds]

    require(counts(_reads(2)) == [1, 2, 2], "counts_rounds")
    require(counts([_reads(3), read()]) != [3, 4, 4], "rounds_not_calls")
    require(counts([_reads(3), read()]) == [1, 2, 2], "counts_rounds")
    require(counts([read(), read(), update(todo("ship"))])[2] == 0, "update_clears")
    require(counts([read(), [read(), update(todo("ship"))]])[1] == 0, "update_beside_others")
    require(counts([read(), update(WRONG)])[1] == 0, "refused_update_clears")
    tracker = tracker_class()
    tracker.record_tool_round(("read_file",))
    tracker.record_tool_round(())
    require(tracker.count == 1, "no_calls_no_change")


def _calls(entry: Any) -> int:
    return len(entry) if isinstance(entry, list) else 1


def check_08_2(tracker_class: Any) -> None:
    """before_model: the reminder is in the fourth request, once, and nowhere else."""
    tracker_wanted(tracker_class)
    ran = _run(tracker_class, ten_requests())
    for request in ran.requests:
        for message in request.messages[2:]:
            text = getattr(message, "content", "")
            near = "TODO list" in text and text != TODO_STALE_REMINDER
            require(not near, "exact_text")
    require(copies(ran.result.history) == 0, "not_in_history")
    found = line(ran.requests)
    require("1" in found or "2" in found, "reminds")
    require("1" not in found[:3], "not_before_the_fourth")
    require(found[3] == "1", "fourth_request")
    require(found[4] == "0", "clears_itself")
    require(found == "0001001001", "again_after_three")
    last = ran.requests[3].messages[-1]
    require(last.to_openai()["role"] == "system", "system_message")
    require(fourth_request(tracker_class) and rounds_not_calls(tracker_class), "rounds_not_calls")
    require(update_clears(tracker_class), "update_clears")


def check_08_3(breaks: Any) -> None:
    """Three broken trackers, each under the name of the property that catches it."""
    require(isinstance(breaks, dict), "shape", wanted="dict_of_classes")
    for name in breaks:
        require(name in PROPERTIES, "no_such_property", name=name)
    require(len(breaks) == 3, "three", count=len(breaks))
    for name, broken in breaks.items():
        tracker_wanted(broken)
        failing = [one for one, holds in PROPERTIES.items() if not holds(broken)]
        require(failing, "nothing_broken", name=name)
        require(name in failing, "another_property", name=name, other=failing[0])
        require(len(failing) <= 3, "too_much", name=name, count=len(failing))


def check_08_4(decision: Any) -> None:
    """Should a refused update silence the reminder? Either answer, with the requests that it leads to."""
    keys = {"silences", "reminders", "because"}
    require(isinstance(decision, dict) and set(decision) == keys, "shape", wanted="dict_of_three")
    silences, reminders, because = decision["silences"], decision["reminders"], decision["because"]
    require(type(silences) is bool, "decided")
    require(
        isinstance(reminders, list) and all(type(one) is int for one in reminders), "shape", wanted="list_of_numbers"
    )
    make = TodoTracker if silences else _unmoved_by_refusals
    script = [read(), read(), update(WRONG), *_reads(4), say("done")]
    found = [number for number, one in enumerate(line(_run(make, script).requests), 1) if one == "1"]
    require(reminders, "names_requests")
    require(all(1 <= one <= len(script) for one in reminders), "in_the_run", count=len(script))
    require(set(reminders) >= set(found), "one_is_missing")
    require(reminders == found, "one_too_many")
    require(isinstance(because, str) and len(because.split()) >= 5, "because")


def _unmoved_by_refusals() -> TodoTracker:
    """A tracker for which only an accepted update counts as one."""

    class Unmoved(TodoTracker):
        _seen: object = ()

        def record_tool_round(self, names: tuple[str, ...]) -> Any:
            accepted, self._seen = self.todos is not self._seen, self.todos
            return super().record_tool_round(names if accepted else tuple("a tool" for _ in names))

    return Unmoved()


def check_08_5(tests: Any) -> dict[str, object]:
    """Tests that find each broken reminder."""
    return judge_tests(tests, REMINDER_MUTANTS)
