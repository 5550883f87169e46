"""Notebook 06, hooks: an observer that counts rounds, a Stop hook that asks once."""

from typing import Any

from labkit.classroom.checks.common import copies, function_wanted, observer_wanted, read, require, run
from labkit.clients.scripted import say
from labkit.hooks import Hooks
from labkit.profiles import P04


def check_06_1(counter_class: Any) -> None:
    """RoundCounter: an observer whose count is the number of rounds with calls."""
    counter = observer_wanted(counter_class, "count")
    require(counter.count == 0, "own_count")
    script = [read(), [read(), read(), read()], say("done")]
    ran = run(script, profile=P04, observers=[counter])
    require(len(ran.result.history) == 8, "keeps_nothing")
    require([len(one.messages) for one in ran.requests] == [2, 4, 8], "whispers_nothing")
    require(counter.count != 0, "counts")
    require(counter.count != 4, "rounds_not_calls")
    require(counter.count != 3, "no_text_rounds")
    require(counter.count == 2, "counts")
    second = run([read(), say("done")], profile=P04, observers=[counter])
    require(counter.count == 3, "goes_on", count=counter.count)
    require([one.after for one in second.result.rounds] == [3, 3], "view_is_the_count")


def check_06_2(make_hook: Any) -> None:
    """make_stop_hook(): a hook that asks for a read before the end, once."""
    function_wanted(make_hook)
    wanted = "Read a.txt before you finish."

    def with_hook(*script: Any) -> Any:
        hook = make_hook()
        require(callable(hook), "shape", wanted="function_of_function")
        return run([*script, say("too many requests")], profile=P04, hooks=Hooks(Stop=(hook,)))

    ran = with_hook(say("done"), read(), say("done"))
    notes = [note for one in ran.result.rounds for note in one.notes]
    require(not any("contract" in note for note in notes), "owns_message")
    require(not any("execution" in note for note in notes), "no_raise")
    require(len(ran.requests) > 1, "asks")
    require(copies(ran.result.history, wanted) > 0, "exact_text")
    require(not notes and copies(ran.result.history, wanted) == 1, "asks_once")
    ran = with_hook(read(), say("done"))
    require(len(ran.requests) == 2, "silent_when_done")
    ran = with_hook(say("done"), say("still done"))
    notes = [note for one in ran.result.rounds for note in one.notes]
    require(not notes and len(ran.requests) == 2, "asks_once")
