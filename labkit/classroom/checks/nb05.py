"""Notebook 05, permissions: a rule that names two tools, a line for every decision."""

from typing import Any

from labkit.classroom.checks.common import function_wanted, read, require, run, todo, update
from labkit.clients.scripted import call, say
from labkit.messages import ToolResult
from labkit.permissions import Rule
from labkit.profiles import P05
from labkit.tools import ToolDefinition, ToolInput


class _Nothing(ToolInput):
    pass


def _tool(name: str, effect: Any) -> ToolDefinition:
    return ToolDefinition(name, "Do nothing.", _Nothing, effect, lambda given: ToolResult("ok"))


def check_05_1(rule: Any) -> None:
    """no_looking: a rule that denies read_file and glob, and no other tool."""
    require(isinstance(rule, Rule), "shape", wanted="rule")
    script = [
        [read(), call("glob", pattern="*"), call("count_files"), call("read_mail"), update(todo("ship"))],
        say("done"),
    ]
    tools = [_tool("count_files", "read"), _tool("read_mail", "external")]
    settled = run(script, rules=[rule], tools=tools).result.rounds[0].settled
    found = {one.call.name: one.audit for one in settled}
    decisions = {name: audit.decision if audit else None for name, audit in found.items()}
    require(all(audit is None or "could not be judged" not in audit.reason for audit in found.values()), "no_raise")
    require("deny" in (decisions["read_file"], decisions["glob"]) or rule.decision == "deny", "denies")
    require(decisions["read_file"] == "deny", "names_read_file")
    require(decisions["glob"] == "deny", "names_glob")
    require(not any(audit and audit.asked for audit in found.values()), "denies")
    require(decisions["count_files"] == "allow", "not_the_effect")
    require(decisions["read_mail"] == "allow", "not_a_part_of_the_name")
    require(decisions["todo_write"] == "allow", "no_other_tool")


def check_05_2(make_sink: Any) -> None:
    """make_sink(lines): a function that adds one line for each decision."""
    function_wanted(make_sink)
    lines: list[Any] = []
    sink = make_sink(lines)
    require(callable(sink), "shape", wanted="function_of_function")
    script = [
        [
            read(),
            call("write_file", path="b.txt", content="x"),
            call("write_file", path="../b.txt", content="x"),
            update(todo("ship")),
            call("read_file", wrong="a.txt"),
        ],
        say("done"),
    ]
    result = run(script, profile=P05, audit=sink).result
    settled = result.rounds[0].settled
    require(not any(one.result.error == "permission_evaluation_error" for one in settled), "no_raise")
    require(lines, "adds_to_the_list")
    require(all(isinstance(one, str) for one in lines), "texts")
    allowed = [one for one in lines if "read_file" in one]
    denied = [one for one in lines if "write_file" in one]
    require(allowed, "allowed_ones_too")
    require(denied, "denied_ones_too")
    require(len(lines) == 4, "one_line_each", count=len(lines))
    require("allow" in lines[0] and "deny" in lines[1], "says_the_decision")
    require(["default" in lines[0], "rule" in lines[1], "workspace" in lines[2]] == [True] * 3, "says_who_decided")
    require(any("todo_write" in one for one in lines), "todo_write_too")
    require(lines[3] == "todo_write: allow (default)", "form")
