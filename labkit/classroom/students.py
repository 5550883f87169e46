"""Make the students' notebooks from the solutions: the same cells, each exercise put back to its stub, and run again.

    python -m labkit.classroom.students                   all of notebooks/solutions/
    python -m labkit.classroom.students FILE ...          only these solutions
    python -m labkit.classroom.students --check           write nothing; fail where the two have drifted apart

Edit the notebook in notebooks/solutions/ (or the words of an exercise in texts/), run this, commit both. An exercise is
three cells: its task, a code cell whose first line is `# Exercise 08.1`, and its check. Cells are found by that line
and not by metadata, since people copy cells.

Start reading at `students_book`. What a notebook's outputs are is for `labkit.classroom.regenerate`; `--check` compares
cells and runs nothing, for the outputs of both are compared by the tests.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labkit.classroom.exercises import common, exercises, text_of
from labkit.classroom.regenerate import execute, find_faults, find_notebooks, replace, tidy

import nbformat  # isort: skip  # after regenerate, which makes this import fast

SOLUTIONS = Path("notebooks/solutions")
MARK = re.compile(r"# Exercise (\d\d\.\d)\Z")


def exercise_of(cell: Any) -> str | None:
    """The number of the exercise that a code cell holds, by its first line."""
    if cell.cell_type != "code" or not cell.source.strip():
        return None
    found = MARK.match(cell.source.splitlines()[0].rstrip())
    return found[1] if found else None


def task_cell(exercise: str) -> str:
    """The words of an exercise as they stand in a notebook."""
    text, words = text_of(exercise), common()
    heading = words["heading"].format(exercise=exercise, title=text["title"])
    effort = words["effort"].format(**text)
    stuck = words["stuck"].format(exercise=exercise)
    return f"{heading}\n\n*{effort}*\n\n{text['task'].strip()}\n\n{stuck}"


def check_cell(exercise: str) -> str:
    """The line that checks it."""
    return f'check("{exercise}", {text_of(exercise)["name"]})'


def students_book(book: Any) -> Any:
    """A solution notebook with each exercise put back to its stub; outputs are as they were."""
    made = copy.deepcopy(book)
    for cell in made.cells:
        if exercise := exercise_of(cell):
            cell.source = text_of(exercise)["stub"].strip()
    return made


def solution_faults(path: Path, book: Any) -> Iterator[str]:
    """Where a solution notebook and the texts of its exercises differ."""
    seen = []
    for at, cell in enumerate(book.cells):
        exercise = exercise_of(cell)
        if exercise is None:
            continue
        if exercise not in exercises():
            yield f"cell {at}: there are no texts for exercise {exercise}"
            continue
        seen.append(exercise)
        around = {at - 1: task_cell(exercise), at: text_of(exercise)["solution"].strip(), at + 1: check_cell(exercise)}
        for place, wanted in around.items():
            if place < len(book.cells) and book.cells[place].source.strip() != wanted:
                yield f"cell {place}: is not what texts/ says of exercise {exercise}"
    wanted_here = list(exercises(path.stem[:2]))
    if seen != wanted_here:
        yield f"holds the exercises {', '.join(seen) or 'none'}; texts/ has {', '.join(wanted_here) or 'none'}"


def cells(book: Any) -> list[tuple[Any, ...]]:
    """A notebook without its outputs."""
    return [(cell.cell_type, cell.id, cell.source, tuple(cell.metadata.get("tags", ()))) for cell in book.cells]


def drift(path: Path) -> list[str]:
    """Why the student's notebook is not what its solution says; empty if it is."""
    book = nbformat.read(path, as_version=4)
    found = list(solution_faults(path, book))
    target = path.parents[1] / path.name
    if not target.is_file():
        return [*found, f"there is no {target.name} for students"]
    wanted, stored = cells(students_book(book)), cells(nbformat.read(target, as_version=4))
    for at, (mine, theirs) in enumerate(zip(wanted, stored, strict=False)):
        if mine != theirs:
            return [*found, f"cell {at} of the student's notebook differs"]
    if len(wanted) != len(stored):
        found.append(f"the student's notebook has {len(stored)} cells, the solution {len(wanted)}")
    return found


def generate(path: Path) -> list[str]:
    """Write the student's notebook, its outputs fresh; what stands against it, and then nothing is written."""
    book = nbformat.read(path, as_version=4)
    faults = list(solution_faults(path, book))
    if faults:
        return faults
    target = path.parents[1] / path.name
    made = students_book(book)
    execute(made, target.parent)
    tidy(made)
    faults = list(find_faults(made))
    if not faults:
        replace(target, nbformat.writes(made).rstrip("\n") + "\n")
    return faults


def main(words: Sequence[str] | None = None) -> int:
    """Generate or check; 0 only if every student's notebook is what its solution says."""
    parser = argparse.ArgumentParser(
        prog="python -m labkit.classroom.students",
        description="Make the students' notebooks from the solutions: exercises become stubs, outputs are run again.",
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[SOLUTIONS], help=f"default: {SOLUTIONS.as_posix()}/")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the two have drifted apart")
    options = parser.parse_args(words)
    # the capstone's second worked solution is for reading only
    books = [path for path in find_notebooks(options.paths) if path.name != "capstone_second.ipynb"]
    missing = [str(path) for path in books if not path.is_file()]
    if missing or not books:
        what = ", ".join(missing) or "no notebook under " + ", ".join(map(str, options.paths))
        print(f"not found: {what}; start this from the folder that holds notebooks/", file=sys.stderr)
        return 2
    failed = False
    for path in books:
        faults = drift(path) if options.check else generate(path)
        for fault in faults:
            print(f"{path}: {fault}")
        if not faults:
            print(f"{path}: " + ("agrees" if options.check else "the student's notebook is made"))
        failed |= bool(faults)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
