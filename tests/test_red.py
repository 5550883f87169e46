"""Red tests: a notebook that stays green when labkit is wrong compares nothing.

`red/mutations.toml` lists changes of the package and, for each, the cells that must notice; its head says how a row is
written. Here each row is made true: a copy of labkit with the one change, one notebook, nbval itself in a process of
its own. The control is the same with no change.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
MUTATIONS = tomllib.loads((ROOT / "tests/red/mutations.toml").read_text(encoding="utf-8"))["mutation"]
ROWS = [(row, book, cells) for row in MUTATIONS for book, cells in row["red"].items()]
BOOKS = sorted({book for _, book, _ in ROWS})


def lay_out(folder, books, change=None):
    """A copy of labkit beside the notebooks, with one change. AssertionError if the change has no one place."""
    shutil.copytree(ROOT / "labkit", folder / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "lab_quickjson.py", folder)
    (folder / "notebooks").mkdir()
    for data in ("cassettes", "scripts"):  # what notebooks read
        if (NOTEBOOKS / data).is_dir():
            shutil.copytree(NOTEBOOKS / data, folder / "notebooks" / data)
    for book in books:
        shutil.copy(NOTEBOOKS / f"{book}.ipynb", folder / "notebooks")
    if change:
        path = folder / "labkit" / change["file"]
        text = path.read_text(encoding="utf-8")
        count = text.count(change["old"])
        assert count == 1, (
            f"{change['name']}: {change['old']!r} stands {count} times in {change['file']}; once is needed"
        )
        path.write_text(text.replace(change["old"], change["new"]), encoding="utf-8", newline="\n")


def compare(folder, books):
    """Let nbval compare; the ids of the red cells and of all cells, for each notebook."""
    # A file of its own, so that no settings of the repository are found.
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    words = ["-p", "lab_quickjson", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", "-q", "--tb=no"]
    words += ["--nbval-cell-timeout=60", "--junitxml=told.xml", *[f"notebooks/{book}.ipynb" for book in books]]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    # First on the kernel's path, so the copy is imported and not what is installed.
    env |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return told(folder / "told.xml", books)


def told(path, books):
    """From nbval's numbers of code cells to their ids."""
    ids = {book: [cell.id for cell in read(book).cells if cell.cell_type == "code"] for book in books}
    red = {book: set() for book in books}
    seen = Counter()
    for case in ET.parse(path).getroot().iter("testcase"):
        book = next(book for book in books if book in case.get("classname") + case.get("file", ""))
        number = int(re.fullmatch(r"Cell (\d+)", case.get("name")).group(1))
        seen[book] += 1
        if case.find("failure") is not None or case.find("error") is not None:
            red[book].add(ids[book][number])
    assert seen == {book: len(names) for book, names in ids.items()}, "some cells were not compared"
    return red


@cache
def read(book):
    return nbformat.read(NOTEBOOKS / f"{book}.ipynb", as_version=4)


def test_an_unchanged_copy_is_green(tmp_path):
    """The control: the copy itself, without a change, turns no cell red."""
    lay_out(tmp_path, BOOKS)
    assert compare(tmp_path, BOOKS) == {book: set() for book in BOOKS}


@pytest.mark.parametrize(("change", "book", "cells"), ROWS, ids=[f"{book}: {row['name']}" for row, book, _ in ROWS])
def test_the_cell_turns_red(tmp_path, change, book, cells):
    """With this change in labkit, nbval fails in the cells that show the behaviour."""
    lay_out(tmp_path, [book], change)
    red = compare(tmp_path, [book])[book]
    assert set(cells) <= red, f"{change['name']}: stayed green: {sorted(set(cells) - red)}; red were {sorted(red)}"


def test_rows_name_cells_that_show_behaviour():
    """A row names cells that exist and compare something, and none that prints the source."""
    for row, book, cells in ROWS:
        sources = {cell.id: cell for cell in read(book).cells if cell.cell_type == "code"}
        assert cells, row["name"]
        for name in cells:
            assert name in sources, f"{row['name']}: {book} has no code cell {name}"
            assert sources[name].outputs, f"{row['name']}: {name} shows nothing"
            assert "getsource(" not in sources[name].source, f"{row['name']}: {name} prints the source"
    assert max(Counter(row["name"] for row in MUTATIONS).values()) == 1


def test_each_notebook_has_two_rows():
    """No notebook is left without changes that it must notice."""
    rows = Counter(book for _, book, _ in ROWS)
    books = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert {book: rows[book] for book in books if rows[book] < 2} == {}


def test_a_change_without_its_place_is_told(tmp_path):
    """A text that is not there, or there twice, fails loudly: a change that changes nothing would prove nothing."""
    for old in ("this text is nowhere", "self"):
        with pytest.raises(AssertionError, match="once is needed"):
            lay_out(tmp_path / str(len(old)), [], {"name": "x", "file": "todos.py", "old": old, "new": ""})


def test_a_change_that_nobody_sees_stays_green(tmp_path):
    """The instrument reports green for a change of words in a comment only: red comes from behaviour."""
    change = {"name": "a comment", "file": "todos.py", "old": "class TodoTracker:", "new": "class TodoTracker:  # seen"}
    lay_out(tmp_path, ["08_fourth_request"], change)
    assert compare(tmp_path, ["08_fourth_request"]) == {"08_fourth_request": set()}
