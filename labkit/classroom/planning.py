"""Eight planning tasks for a real model, and what to look at afterwards: its form, its meaning, and the invariants.

Read `attempt` first. A repair is nothing new: the refusal that the loop wrote is in the history, and the model is asked
once more. `invariants` judges a run that nobody scripted by what must hold for every run.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from labkit.classroom.figures import html_table, reminders_in, table
from labkit.loop import Round, RunResult
from labkit.messages import AssistantMessage, ToolMessage
from labkit.model import ModelClient
from labkit.profiles import P05, build_agent
from labkit.todos import TODO_STALE_REMINDER, TodoItem

TASKS: tuple[tuple[str, str, str], ...] = (
    ("read config.py", "fix the port", "run the tests"),
    ("buy milk", "bake bread", "wash up"),
    ("clone the repo", "install dependencies", "start the server"),
    ("write the outline", "draft chapter one", "send it to Ana"),
    ("measure the wall", "buy paint", "paint the door"),
    ("export the data", "plot the curve", "save the figure"),
    ("find the bug", "write a test", "push the fix"),
    ("book a room", "invite the class", "print the notes"),
)
"""Three steps each, which the model is asked to write down as todos."""

REPAIR = "That was no call that could be run. Reply with one JSON object that calls todo_write, and nothing else."


def prompt_of(steps: Sequence[str]) -> str:
    """The task in words."""
    return f"Plan these steps as todos: {', '.join(steps)}."


class Attempt(NamedTuple):
    """One task: what was asked, how many requests it took, the list that was accepted, and all rounds."""

    steps: tuple[str, ...]
    requests: int
    todos: tuple[TodoItem, ...]
    rounds: tuple[Round, ...]

    @property
    def said(self) -> int:
        """How many of the steps some item names, word for word but for case and punctuation."""
        items = [_plain(item.content) for item in self.todos]
        return sum(any(_plain(step) in item for item in items) for step in self.steps)

    @property
    def as_asked(self) -> bool:
        """Whether the list is the steps, all of them and nothing else."""
        return len(self.todos) == len(self.steps) == self.said


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def attempt(client: ModelClient, steps: tuple[str, ...], *, repairs: int = 0) -> Attempt:
    """Ask a fresh P05 agent for one list; at most `repairs` more requests while none was accepted."""
    with tempfile.TemporaryDirectory() as folder:
        agent = build_agent(P05, client, workspace=folder, max_rounds=1)
        rounds = list(agent.run(prompt_of(steps)).rounds)
        while not agent.todos and len(rounds) <= repairs:
            # a refused call has its reason in the history already; words without a call get one
            rounds += agent.run(None if rounds[-1].settled else REPAIR).rounds
        todos = tuple([TodoItem(item.content, item.status) for item in agent.todos])
        return Attempt(steps, len(rounds), todos, tuple(rounds))


def requests_at_most(tasks: Sequence[Sequence[str]] = TASKS, *, repairs: int = 0) -> int:
    """How many requests the tasks can take: the cap to give to the client."""
    return len(tasks) * (1 + repairs)


def tokens_at_most(requests: int, *, prompt_characters: int, reply_tokens: int) -> int:
    """A rough estimate before anything is spent: four characters to a token, and every reply as long as allowed."""
    return requests * (prompt_characters // 4 + reply_tokens)


class Table:
    """Rows under headings, as plain text and as a table in a notebook."""

    def __init__(self, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.headings = tuple(headings)
        self.rows = tuple(map(tuple, rows))

    def __repr__(self) -> str:
        return table(self.headings, self.rows)

    def _repr_html_(self) -> str:
        return html_table(self.headings, self.rows)


def outcome(modes: Mapping[str, Sequence[Attempt]]) -> Table:
    """For each way of asking: how many lists were accepted, how many name the steps, what it took."""
    rows = []
    for mode, attempts in modes.items():
        count = len(attempts)
        rows.append(
            (
                mode,
                f"{sum(bool(one.todos) for one in attempts)}/{count}",
                f"{sum(one.as_asked for one in attempts)}/{count}",
                f"{sum(one.said for one in attempts)}/{sum(len(one.steps) for one in attempts)}",
                sum(one.requests for one in attempts),
            )
        )
    return Table(("way of asking", "lists accepted", "lists as asked", "steps named", "requests"), rows)


# ---- what must hold for a run, whoever wrote the replies ----

Invariant = Callable[[RunResult], bool]


def every_call_answered_once(result: RunResult) -> bool:
    """Each call in the history has exactly one result, and there is no other result."""
    calls = Counter(
        call.id for message in result.history if isinstance(message, AssistantMessage) for call in message.tool_calls
    )
    answers = Counter(message.tool_call_id for message in result.history if isinstance(message, ToolMessage))
    return calls == answers


def one_reminder_at_most(result: RunResult) -> bool:
    """No request holds two reminders."""
    return all(reminders_in(this.request) <= 1 for this in result.rounds)


def history_clean(result: RunResult) -> bool:
    """No reminder stayed in the history."""
    return not any(message.content == TODO_STALE_REMINDER for message in result.history)


def snapshot_is_last_accepted(result: RunResult) -> bool:
    """After each round the list is what the last accepted call wrote, or what it was before the round."""
    for this in result.rounds:
        texts = [one.result.content for one in this.settled if one.call.name == "todo_write" and not one.result.error]
        if texts and texts[-1] != _snapshot(this.after.todos):
            return False
        if not texts and this.after.todos is not this.before.todos:
            return False
    return True


def _snapshot(todos: Sequence[TodoItem]) -> str:
    """A list as the tool shows it."""
    return json.dumps({"todos": [item._asdict() for item in todos]}, separators=(",", ":"))


INVARIANTS: tuple[Invariant, ...] = (
    every_call_answered_once,
    one_reminder_at_most,
    history_clean,
    snapshot_is_last_accepted,
)


def judged(result: RunResult, invariants: Sequence[Invariant] = INVARIANTS) -> Table:
    """Each invariant by name, and whether it holds for this run."""
    return Table(
        ("invariant", "holds"),
        [(one.__name__.replace("_", " "), "yes" if one(result) else "NO") for one in invariants],
    )
