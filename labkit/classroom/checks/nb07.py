"""Notebook 07, todo_write: replace and freeze, ASCII, identity after refusal, the singleton, tests for a list."""

import json
from typing import Any

from labkit.classroom.checks.broken import judge_tests
from labkit.classroom.checks.common import (
    class_wanted,
    folder,
    function_wanted,
    read,
    require,
    todo,
    update,
)
from labkit.clients.scripted import ScriptedModelClient, say
from labkit.messages import ToolResult
from labkit.todos import TODO_STALE_REMINDER, TodoItem

LIST_MUTANTS = (
    "merging",
    "partial_write",
    "blanks_accepted",
    "ensure_ascii_off",
    "only_the_change",
    "cap_moved",
    "shared_list",
    "aliasing",
    "forgets_on_refusal",
)


def check_07_1(plan_class: Any) -> None:
    """replace(items): the whole list is replaced, by frozen values, in one assignment."""
    class_wanted(plan_class)
    plan = plan_class()
    given = [todo("read"), todo("edit"), todo("test")]
    plan.replace(given)
    first = plan.todos
    require(isinstance(first, tuple), "a_tuple")
    require(all(type(item) is TodoItem for item in first), "frozen_items")
    require([item.content for item in first] == ["read", "edit", "test"], "all_items_in_order", count=len(first))
    given[0]["content"] = "changed later"
    given.append(todo("added later"))
    require(plan.todos == first and first[0].content == "read", "no_aliasing")
    plan.replace([todo("edit", "completed")])
    require(len(plan.todos) != 4 and len(plan.todos) != 3, "left_out_is_gone")
    require(plan.todos == (TodoItem("edit", "completed"),), "newest_only")
    require(len(first) == 3 and first[1] == TodoItem("edit", "pending"), "old_snapshot_stays")
    plan.replace([])
    require(plan.todos == (), "empty_clears")
    require(plan_class().todos == (), "own_list")


def check_07_2(serialise: Any) -> None:
    """serialise(todos): the snapshot as compact ASCII JSON that decodes to the same list."""
    function_wanted(serialise)
    text = serialise((TodoItem("ship", "completed"), TodoItem("write", "pending")))
    require(type(text) is str, "shape", wanted="function_of_text")
    try:
        decoded = json.loads(text)
    except ValueError:
        decoded = None
        require(False, "json")
    require(isinstance(decoded, dict) and list(decoded) == ["todos"], "under_todos")
    items = decoded["todos"]
    require(isinstance(items, list) and len(items) == 2, "whole_list")
    require(all(isinstance(item, dict) for item in items), "objects")
    require(list(items[0]) == ["content", "status"], "key_order")
    require(items == [todo("ship", "completed"), todo("write")], "decodes_back")
    require(" " not in text and "\n" not in text, "compact")
    text = serialise((TodoItem("编写 \U0001f680", "pending"),))
    require(text.isascii(), "ascii")
    require(json.loads(text)["todos"][0]["content"] == "编写 \U0001f680", "decodes_back")
    require("\\u7f16" in text and "\\ud83d\\ude80" in text, "escapes")
    require(serialise(()) == '{"todos":[]}', "empty_list")


def check_07_3(plan_class: Any) -> None:
    """write(items): accepted replaces, refused leaves the same object."""
    class_wanted(plan_class)
    for wrong in (
        [todo("ship"), todo("test", "blocked")],
        [todo("test", "blocked"), todo("ship")],
        [todo("ship"), todo("   ")],
        [todo("ship"), todo("")],
    ):
        plan = plan_class()
        answer = plan.write([todo("read"), todo("edit")])
        require(isinstance(answer, ToolResult) and answer.error is None, "accepts_right_lists")
        before = plan.todos
        require([item.content for item in before] == ["read", "edit"], "accepts_right_lists")
        answer = plan.write(wrong)
        require(isinstance(answer, ToolResult), "refusal_is_a_result")
        require(plan.todos != (), "not_emptied")
        require(not any(getattr(item, "content", None) == "ship" for item in plan.todos), "no_partial_write")
        require(answer.error is not None, "says_no")
        require(answer.error == "invalid_arguments", "code", code=answer.error)
        require(plan.todos is before, "same_object")
        plan.write([todo("read"), todo("edit")])
        require(plan.todos == before and plan.todos is not before, "control")
        require(isinstance(plan.todos, tuple), "a_tuple")


def check_07_4(agent_for: Any) -> None:
    """agent_for(model, folder): two agents share neither list nor count."""
    function_wanted(agent_for)
    with folder() as place:
        one_model = ScriptedModelClient([update(todo("mine", "in_progress")), read(), read(), read(), say("done")])
        two_model = ScriptedModelClient([read(), say("done")])
        one, two = agent_for(one_model, place), agent_for(two_model, place)
        require(all(hasattr(agent, "run") for agent in (one, two)), "shape", wanted="function_of_agent")
        require(one is not two, "two_agents")
        one.run("go")
        require(len(one_model.requests) == 5, "uses_the_model")
        require([item.content for item in one.todos] == ["mine"], "still_a_tracker")
        require(tuple(two.todos) == (), "lists_apart")
        two.run("go")
        heard = [message.content for request in two_model.requests for message in request.messages]
        require(TODO_STALE_REMINDER not in heard, "counts_apart")
        require(TODO_STALE_REMINDER in [message.content for message in one_model.requests[4].messages], "still_counts")
        late = agent_for(ScriptedModelClient([say("done")]), place)
        require(tuple(late.todos) == (), "lists_apart")


def check_07_5(tests: Any) -> dict[str, object]:
    """Tests that find each broken list."""
    return judge_tests(tests, LIST_MUTANTS)
