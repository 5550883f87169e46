"""Notebook 10, the distance of the plan: measure it, and choose a rhythm under a budget."""

from typing import Any

from labkit.classroom.checks.common import WRONG, function_wanted, read, require, run, todo, update
from labkit.classroom.compare import DESIGNS, Design, run_in
from labkit.classroom.compare import read as read_long
from labkit.classroom.figures import plan_distance, request_size, wire_size
from labkit.clients.scripted import call, say
from labkit.messages import SystemMessage
from labkit.model import ModelRequest

BUDGET = 1500


def check_10_1(distance: Any) -> None:
    """my_plan_distance(request): the sizes of all messages behind the last accepted list."""
    function_wanted(distance)

    def last(*script: Any) -> ModelRequest:
        return run([*script, say("done")]).requests[-1]

    plan = update(todo("read"), todo("edit"))
    require(distance(last(read(), read())) is None, "none_without_a_plan")
    require(distance(last(plan)) == 0, "zero_right_behind")
    once = last(plan, read())
    require(distance(once) != 2, "sizes_not_messages")
    require(distance(once) == sum(wire_size(one) for one in once.messages[-2:]), "all_behind")
    require(distance(last(plan, read(), plan)) == 0, "newest_plan")
    require(distance(last(plan, read(), read(), plan, read())) == distance(once), "newest_plan")
    refused = last(plan, read(), update(WRONG))
    require(distance(refused) == sum(wire_size(one) for one in refused.messages[-4:]), "a_refusal_is_no_plan")
    reminded = last(plan, read(), read(), read())
    require(isinstance(reminded.messages[-1], SystemMessage), "reminder_is_no_plan")
    require(distance(reminded) == plan_distance(reminded), "reminder_is_no_plan")
    looks = last(plan, call("write_file", path="b.txt", content='{"todos":[]}'), read())
    require(distance(looks) == plan_distance(looks), "results_not_arguments")


def with_rhythm(every: int) -> Any:
    """Twelve reads, and the plan before each `every` of them."""

    def script(design: Design) -> list[Any]:
        plan = design.update(("read", "in_progress"), ("edit", "pending"))
        return [*[plan, *[read_long()] * every] * (12 // every), say("done")]

    return script


def check_10_2(rhythm: Any) -> None:
    """A rhythm that keeps the distance under the budget, and what it costs."""
    keys = {"every", "largest", "cost"}
    right = isinstance(rhythm, dict) and set(rhythm) == keys and all(type(one) is int for one in rhythm.values())
    require(right, "shape", wanted="dict_of_three_numbers")
    every = rhythm["every"]
    require(every in (1, 2, 3, 4, 6, 12), "divides_twelve", every=every)

    def measured(every: int) -> tuple[int, int]:
        rounds = run_in(DESIGNS[0], with_rhythm(every)).rounds
        distances = [plan_distance(one.request) for one in rounds]
        return max(one for one in distances if one is not None), request_size(rounds[-1].request)

    largest, size = measured(every)
    require(largest <= BUDGET, "under_the_budget", every=every)
    require(not any(measured(other)[0] <= BUDGET for other in (4, 6, 12) if other > every), "not_more_than_needed")
    require(rhythm["largest"] == largest, "largest_as_measured")
    require(rhythm["cost"] == size - measured(12)[1], "cost_as_measured")
