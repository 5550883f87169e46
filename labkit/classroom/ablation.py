"""Does the list help? The same small tasks with no list, with one, and with a list and its reminder.

Read `ablation` first. Whether a task succeeded is looked up in its files, never asked of the model. One command runs it
against whatever server is configured, or the small local model:

    python -m labkit.classroom.ablation [--local]

The sign of the result may be "no gain". Four tasks are an exercise in measuring, and no proof of anything.
"""

import argparse
import datetime
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from labkit.classroom.figures import reminders_in, request_size
from labkit.classroom.planning import Table
from labkit.classroom.serve import local_server
from labkit.clients.cassette import Recorder
from labkit.clients.openai import OpenAIModelClient
from labkit.errors import ModelError
from labkit.loop import RunResult
from labkit.messages import SystemMessage
from labkit.model import ModelClient
from labkit.permissions import Ask
from labkit.profiles import P04, P05, Agent, build_agent
from labkit.todos import TodoTracker


class Task(NamedTuple):
    """What is there, what is asked, and the files that must be there afterwards, with exactly this text."""

    prompt: str
    before: dict[str, str]
    after: dict[str, str]

    def done(self, folder: Path) -> bool:
        """Whether the files are as asked, but for white space at their ends."""
        return all(_text(folder / name) == text.strip() for name, text in self.after.items())


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else None


TASKS = (
    Task("Copy the text of a.txt into b.txt.", {"a.txt": "hello"}, {"a.txt": "hello", "b.txt": "hello"}),
    Task("In config.py change the port from 80 to 8080.", {"config.py": "port = 80"}, {"config.py": "port = 8080"}),
    Task(
        "Write one.txt with the word one, then two.txt with the word two, then three.txt with the word three.",
        {},
        {"one.txt": "one", "two.txt": "two", "three.txt": "three"},
    ),
    Task(
        "Read x.txt and y.txt, then write their sum as a number into sum.txt.",
        {"x.txt": "19", "y.txt": "23"},
        {"sum.txt": "42"},
    ),
)


class SilentTracker(TodoTracker):
    """The list without its reminder."""

    def before_model(self) -> tuple[SystemMessage, ...]:
        """Nothing, however stale the list is."""
        return ()


def _no_list(model: ModelClient, **parts: Any) -> Agent:
    return build_agent(P04, model, **parts)


def _list(model: ModelClient, **parts: Any) -> Agent:
    return build_agent(P05, model, todos=SilentTracker(), **parts)


def _list_and_reminder(model: ModelClient, **parts: Any) -> Agent:
    return build_agent(P05, model, **parts)


Arm = Callable[..., Agent]

ARMS: dict[str, Arm] = {"no list": _no_list, "list": _list, "list and reminder": _list_and_reminder}


class Trial(NamedTuple):
    """One task in one arm. `error` is what the client raised, if it did; the task has failed then."""

    arm: str
    task: Task
    success: bool
    result: RunResult | None
    error: str = ""


def approve_files(ask: Ask) -> str:
    """Yes to writing files, whose folder is thrown away; no to everything else, the shell above all."""
    return "allow" if ask.tool.effect == "write" else "deny"


def ablation(model: ModelClient, tasks: Iterable[Task] = TASKS, *, max_rounds: int = 6) -> tuple[Trial, ...]:
    """Each task once in each arm, each time with a fresh agent in a fresh folder."""
    return tuple([_trial(name, arm, task, model, max_rounds) for task in tasks for name, arm in ARMS.items()])


def _trial(name: str, arm: Arm, task: Task, model: ModelClient, max_rounds: int) -> Trial:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for file, text in task.before.items():
            (folder / file).write_text(text, encoding="utf-8")
        agent = arm(model, workspace=folder, approver=approve_files, max_rounds=max_rounds)
        try:
            result = agent.run(task.prompt)
        except ModelError as error:
            return Trial(name, task, False, None, str(error))
        return Trial(name, task, task.done(folder), result)


def summary(trials: Sequence[Trial]) -> Table:
    """A line for each arm: what it reached and what it took."""
    rows: list[tuple[Any, ...]] = []
    for name in ARMS:
        mine = [trial for trial in trials if trial.arm == name]
        rounds = [this for trial in mine if trial.result for this in trial.result.rounds]
        claimed = sum(trial.result.stop_reason == "completed" for trial in mine if trial.result)
        rows.append(
            (
                name,
                f"{sum(trial.success for trial in mine)}/{len(mine)}",
                f"{claimed}/{len(mine)}",
                len(rounds),
                sum(request_size(this.request) for this in rounds),
                sum(reminders_in(this.request) for this in rounds),
                sum(bool(trial.error) for trial in mine),
            )
        )
    headings = ("arm", "done", "said so", "rounds", "characters sent", "reminders", "errors")
    return Table(headings, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """The command: 0 when it ran through, 2 where no model could be had."""
    parser = argparse.ArgumentParser(prog="python -m labkit.classroom.ablation", description="Does the list help?")
    parser.add_argument("--local", action="store_true", help="the small model on this machine (see labkit serve)")
    parser.add_argument("--calls", choices=("native", "json_schema", "text"), help="how the server calls tools")
    parser.add_argument("--max-rounds", type=int, default=6)
    parser.add_argument("--record", metavar="FILE", help="keep the run as a cassette")
    given = parser.parse_args(argv)
    options: dict[str, Any] = {
        "calls": given.calls or ("json_schema" if given.local else "native"),
        "options": {"temperature": 0, "max_tokens": 96},
        "max_requests": len(TASKS) * len(ARMS) * given.max_rounds,
        "timeout": 300,
    }
    try:
        with local_server() if given.local else nullcontext() as server:
            if server:
                client = OpenAIModelClient(model=server.model, base_url=server.url, api_key=server.api_key, **options)
            else:
                client = OpenAIModelClient.from_env(**options)
            print(f"{len(TASKS)} tasks in {len(ARMS)} arms: at most {options['max_requests']} requests", flush=True)
            model: ModelClient = Recorder(client, given.record) if given.record else client
            trials = ablation(model, max_rounds=given.max_rounds)
    except ModelError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{client.model}, {datetime.date.today().isoformat()}, calls={client.calls}")
    print(summary(trials))
    return 0


if __name__ == "__main__":
    sys.exit(main())
