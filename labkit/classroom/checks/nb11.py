"""Notebook 11, a real model: one more invariant, and claims without evidence."""

import tempfile
from pathlib import Path
from typing import Any

from labkit.classroom.checks.broken import build_with
from labkit.classroom.checks.common import WRONG, function_wanted, read, require, run, ten_requests, todo, update
from labkit.clients.scripted import ScriptedModelClient, call, say
from labkit.loop import RunResult

BROKEN = ("results_reversed", "never_clears", "counts_calls", "only_the_change", "merging")

_SCRIPT = [
    update(todo("read"), todo("edit")),
    [read(), call("glob", pattern="*"), read()],
    update(todo("edit", "completed")),
    [read(), update(WRONG)],
    [read(), read(), read()],
    read(),
    read(),
    read(),
    read(),
    say("done"),
]


def _result(name: str | None) -> RunResult:
    with tempfile.TemporaryDirectory() as place:
        Path(place, "a.txt").write_text("hello", encoding="utf-8")
        return build_with(name, Path(place))(ScriptedModelClient(_SCRIPT)).run("go")


def check_11_1(invariant: Any) -> None:
    """A function of a run that holds for each true run and for not each broken one."""
    function_wanted(invariant)
    true_runs = [
        _result(None),
        run([say("hi")]).result,
        run(ten_requests()).result,
        run([call("made_up"), update(WRONG), call("write_file", "{"), say("done")]).result,
        run([read(), read()], max_rounds=2).result,
    ]
    for result in true_runs:
        require(type(invariant(result)) is bool, "true_or_false")
        require(invariant(result), "holds_for_true_runs")
    require(not all(invariant(_result(name)) for name in BROKEN), "finds_a_broken_run", count=len(BROKEN))


def check_11_2(unproven: Any) -> None:
    """unproven(result): what was marked completed before any other tool had run."""
    function_wanted(unproven)

    def claims(*script: Any) -> list[str]:
        found: Any = unproven(run([*script, say("done")]).result)
        require(isinstance(found, list), "shape", wanted="function_of_texts")
        return list(found)

    done = update(todo("read", "completed"), todo("edit"))
    require(claims(done) == ["read"], "finds_it")
    require(claims(read(), done) == [], "work_counts")
    require(claims(update(todo("read", "in_progress")), done) == ["read"], "todo_write_is_no_work")
    require(claims(call("read_file", path="no.txt"), done) == ["read"], "failed_calls_are_no_work")
    require(claims(done, read()) == ["read"], "before_not_after")
    require(
        claims(done, read(), update(todo("read", "completed"), todo("edit", "completed"))) == ["read"], "only_early"
    )
    require(claims(say("hi")) == [], "no_list")
