"""The work that every peer has to do: scripts of model responses, and the numbers to check afterwards.

Standard library only. A response is a Chat Completions message as a plain dict, built before any clock starts:
the assistant's tool calls carry their arguments as a JSON string, exactly as a server sends them.
"""

from __future__ import annotations

import json

SYSTEM = "You are a careful assistant. Keep the list up to date."
TASK = "Work through the list and report."
FINAL = "All done."
STATUSES = ("pending", "in_progress", "completed")
MAX_ITEMS = 50
NOTE = "line one of the note\nline two of the note"

DESCRIPTIONS = {
    "W1": "one todo_write of 10 items a round",
    "W2": "three read_note calls a round, and a todo_write of 10 items every 4th round",
    "W3": "one invalid todo_write (unknown status) a round, sent back to the model as an error",
    "W4": "one todo_write of 50 items a round",
}

# About 40 characters each; every fifth one has characters outside ASCII (and one outside the BMP).
_TEXTS = tuple(
    (
        f"Überprüfe Schritt {i:02d} – naïve façade 🚀"
        if i % 5 == 4
        else f"Check step {i:02d} of the plan and write it down"
    )
    for i in range(MAX_ITEMS)
)


def snapshot(round_no: int, size: int) -> list[dict[str, str]]:
    """A list of `size` items in which one item moves on every round."""
    at = round_no % (size + 1)
    return [
        {"content": _TEXTS[i], "status": STATUSES[2] if i < at else STATUSES[1] if i == at else STATUSES[0]}
        for i in range(size)
    ]


def _call(round_no: int, index: int, name: str, arguments: dict) -> dict:
    return {
        "id": f"call_{round_no}_{index}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def _round(workload: str, round_no: int, todo_tool: str, todo_key: str) -> list[dict]:
    if workload == "W1":
        return [_call(round_no, 0, todo_tool, {todo_key: snapshot(round_no, 10)})]
    if workload == "W4":
        return [_call(round_no, 0, todo_tool, {todo_key: snapshot(round_no, 50)})]
    if workload == "W3":
        items = snapshot(round_no, 10)
        items[round_no % 10] = {**items[round_no % 10], "status": "doing"}
        return [_call(round_no, 0, todo_tool, {todo_key: items})]
    if workload == "W2":
        calls = [_call(round_no, i, "read_note", {"path": f"notes/{round_no}-{i}.txt"}) for i in range(3)]
        if round_no % 4 == 3:
            calls.append(_call(round_no, 3, todo_tool, {todo_key: snapshot(round_no, 10)}))
        return calls
    raise ValueError(f"unknown workload {workload!r}")


def responses(workload: str, rounds: int, *, todo_tool: str = "todo_write", todo_key: str = "todos") -> list[dict]:
    """`rounds` assistant messages with tool calls, then one with text."""
    out = [
        {"role": "assistant", "content": None, "tool_calls": _round(workload, r, todo_tool, todo_key)}
        for r in range(rounds)
    ]
    out.append({"role": "assistant", "content": FINAL})
    return out


def expected(workload: str, rounds: int) -> dict[str, int]:
    """What a correct run did: model calls, good and refused tool calls."""
    todo = rounds // 4 if workload == "W2" else rounds
    return {
        "model_calls": rounds + 1,
        "reads": 3 * rounds if workload == "W2" else 0,
        "writes": 0 if workload == "W3" else todo,
        "errors": rounds if workload == "W3" else 0,
    }


class Script:
    """Plays a list of responses. Every adapter's fake model asks it for the next one, so it counts model calls."""

    __slots__ = ("at", "responses")

    def __init__(self, items: list[dict]) -> None:
        self.responses = items
        self.at = 0

    def next(self) -> dict:
        at = self.at
        self.at = at + 1
        return self.responses[at]

    def rewind(self) -> None:
        self.at = 0


class TimedScript(Script):
    """A Script that notes the processor time at each call: the gaps are the cost of each round (for scaling)."""

    __slots__ = ("clock", "ticks")

    def __init__(self, items: list[dict]) -> None:
        super().__init__(items)
        from time import process_time_ns

        self.clock = process_time_ns
        self.ticks: list[int] = []

    def next(self) -> dict:
        self.ticks.append(self.clock())
        return super().next()

    def rewind(self) -> None:
        super().rewind()
        self.ticks = []
