"""The students' notebooks are what their solutions say, with each exercise put back to its stub."""

import re
from pathlib import Path

import nbformat
import pytest

from labkit.classroom import students
from labkit.classroom.exercises import exercises, text_of
from labkit.classroom.students import check_cell, drift, generate, main, students_book, task_cell

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("[0-9][0-9]_*.ipynb"))
each_solution = pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)


def cells_of(exercise):
    """The three cells of an exercise."""
    return [
        nbformat.v4.new_markdown_cell(task_cell(exercise)),
        nbformat.v4.new_code_cell(text_of(exercise)["solution"].strip()),
        nbformat.v4.new_code_cell(check_cell(exercise)),
    ]


def solution_in(folder, *cells):
    """A solution notebook of chapter 00 with these cells, by themselves if none are given those of its exercises."""
    start = nbformat.v4.new_code_cell("from labkit.classroom.exercises import check")
    found = cells or [cell for exercise in exercises("00") for cell in cells_of(exercise)]
    path = folder / "solutions" / "00_small.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[start, *found]), path)
    return path


# ---- the notebooks that are there ----


def test_each_chapter_with_exercises_has_its_solutions():
    """For each file of exercises there is one solution notebook, and a student's of the same name."""
    chapters = sorted({exercise[:2] for exercise in exercises()})
    assert [path.name[:2] for path in SOLUTIONS if path.name[:2] in chapters] == chapters
    assert all((NOTEBOOKS / path.name).is_file() for path in SOLUTIONS)


@each_solution
def test_nothing_has_drifted(path):
    """The student's notebook is its solution with stubs, and the solution's exercises are those of the texts."""
    assert drift(path) == []


@each_solution
def test_a_students_notebook_does_not_hold_the_solutions(path):
    """No code cell of a student's notebook is the solution of an exercise; each check says not attempted."""
    sources = {}
    for cell in nbformat.read(NOTEBOOKS / path.name, as_version=4).cells:
        if cell.cell_type == "code":
            sources[cell.source] = cell.outputs
    for exercise in exercises(path.name[:2]):
        assert text_of(exercise)["solution"].strip() not in sources
        assert sources[check_cell(exercise)][0].data["text/plain"] == f"{exercise}: not attempted"


@each_solution
def test_the_stored_checks_of_a_solution_say_ok(path):
    """In a solution notebook each check was run and passed."""
    said = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and re.match(r"check\(", cell.source):
            said[cell.source] = cell.outputs[0].data["text/plain"]
    for exercise in exercises(path.name[:2]):
        assert said[check_cell(exercise)].startswith(f"{exercise}: ok")


# ---- how they are made ----


def test_cells_are_found_by_their_first_line(tmp_path):
    """An exercise is known by its code alone: without ids and metadata it is put back, and nothing else changes."""
    book = nbformat.read(solution_in(tmp_path), as_version=4)
    for cell in book.cells:
        cell.metadata = {"tags": ["copied"]}
        cell.id = f"x{id(cell)}"
    made = students_book(book)
    changed = [at for at, (a, b) in enumerate(zip(book.cells, made.cells, strict=True)) if a.source != b.source]
    assert changed == [2, 5]
    assert made.cells[2].source == text_of("00.1")["stub"].strip()


def test_a_generated_notebook_was_run(tmp_path, capsys):
    """Outputs are those of the stubs, and --check agrees with what was made."""
    path = solution_in(tmp_path)
    assert main([str(path)]) == 0
    made = nbformat.read(tmp_path / path.name, as_version=4)
    texts = [output.data["text/plain"] for cell in made.cells for output in cell.get("outputs", [])]
    assert texts == ["00.1: not attempted", "00.2: not attempted"]
    assert [cell.execution_count for cell in made.cells if cell.cell_type == "code"] == [1, 2, 3, 4, 5]
    assert main(["--check", str(path)]) == 0
    assert capsys.readouterr().out.count(path.name) == 2


def agreeing(tmp_path):
    """A solution and a student's notebook that agree, without running anything."""
    path = solution_in(tmp_path)
    nbformat.write(students_book(nbformat.read(path, as_version=4)), tmp_path / path.name)
    assert drift(path) == []
    return path


def change(path, at, source):
    """Give one cell another source."""
    book = nbformat.read(path, as_version=4)
    book.cells[at].source = source
    nbformat.write(book, path)


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_changed_student_cell_is_drift(tmp_path, at):
    """Whatever cell of the student's notebook was edited by hand is named by its place."""
    path = agreeing(tmp_path)
    change(tmp_path / path.name, at, "1 + 1")
    assert drift(path) == [f"cell {at} of the student's notebook differs"]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_exercise_that_is_not_as_in_the_texts_is_drift(tmp_path, at):
    """Task, solution and check of the solution notebook are those of the texts, and nothing is generated until then."""
    path = agreeing(tmp_path)
    change(path, at, "# Exercise 00.1\nsomething = 1")
    assert f"cell {at}: is not what texts/ says of exercise 00.1" in drift(path)
    before = (tmp_path / path.name).read_bytes()
    assert generate(path)
    assert (tmp_path / path.name).read_bytes() == before


def test_a_cell_more_is_drift(tmp_path):
    """The two notebooks have the same number of cells."""
    path = agreeing(tmp_path)
    book = nbformat.read(tmp_path / path.name, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("1"))
    nbformat.write(book, tmp_path / path.name)
    assert drift(path) == ["the student's notebook has 8 cells, the solution 7"]


def test_a_missing_exercise_or_notebook_is_drift(tmp_path):
    """Each exercise of the texts is in the solution notebook, and a student's notebook is there."""
    path = solution_in(tmp_path, *cells_of("00.1"))
    assert drift(path) == [
        "holds the exercises 00.1; texts/ has 00.1, 00.2",
        "there is no 00_small.ipynb for students",
    ]


def test_the_command_says_what_is_missing(tmp_path, capsys):
    """A wrong path is a usage error with a sentence; drift is exit code 1 with its place."""
    assert main([str(tmp_path / "no.ipynb")]) == 2
    assert "not found" in capsys.readouterr().err
    path = agreeing(tmp_path)
    change(tmp_path / path.name, 2, "1")
    assert main(["--check", str(path)]) == 1
    assert "cell 2 of the student's notebook differs" in capsys.readouterr().out


def test_the_default_is_the_folder_of_solutions():
    """Without a path all solutions are meant."""
    assert Path("notebooks/solutions") == students.SOLUTIONS
