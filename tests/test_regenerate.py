"""Regenerating notebooks: the same code gives the same bytes, and what must not be stored is named."""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from labkit.classroom import regenerate

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
LESSON = [
    "import ipywidgets\nimport labkit",
    "ipywidgets.IntSlider(value=3)",
    "for word in ('eins', 'zwei', '三'):\n    print(word, flush=True)",
    "int('x')",
]


def write_book(path: Path, *sources: str) -> Path:
    """A notebook as an editor leaves it: not run, its last cell allowed to raise."""
    cells = [v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    cells[-1].metadata["tags"] = ["raises-exception"]
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell("# 标题", id="title"), *cells]), path)
    return path


def book_with(*outputs: Any) -> Any:
    """A notebook of one cell that was run, with these outputs."""
    return v4.new_notebook(cells=[v4.new_code_cell("1", id="one", execution_count=1, outputs=list(outputs))])


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`python -m labkit.classroom.regenerate words`."""
    command = [sys.executable, "-X", "utf8", "-m", "labkit.classroom.regenerate", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", timeout=120, check=False)


# --- the same bytes ---


def test_the_same_code_gives_the_same_bytes(tmp_path: Path) -> None:
    """A second run finds the file as it is; a stale one is named by --check and left alone."""
    folder = tmp_path / "测试 folder" / "notebooks"
    folder.mkdir(parents=True)
    path = write_book(folder / "a.ipynb", *LESSON)
    as_edited = path.read_bytes()
    stale = run("--check", cwd=folder.parent)
    assert (stale.returncode, "stale" in stale.stdout, path.read_bytes()) == (1, True, as_edited)

    first = run(cwd=folder.parent)
    assert first.returncode == 0, first.stdout + first.stderr
    stored = path.read_bytes()
    second = run("--check", cwd=folder.parent)
    assert (second.returncode, path.read_bytes()) == (0, stored), second.stdout

    book = nbformat.reads(stored.decode("utf-8"), as_version=4)
    _, *cells = book.cells
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4]
    assert cells[1].outputs[0].data == {"text/plain": "IntSlider(value=3)"}
    assert [output.text for output in cells[2].outputs] == ["eins\nzwei\n三\n"]
    assert cells[3].outputs[0].traceback == ["ValueError: invalid literal for int() with base 10: 'x'"]


@pytest.mark.parametrize(("source", "named"), [("1 / 0", "ZeroDivisionError"), ("object()", "cell 1: 'at 0x")])
def test_what_cannot_be_stored_leaves_the_file_alone(tmp_path: Path, source: str, named: str) -> None:
    """After an error, or an output that must not be stored, the reason is shown and the file is as it was."""
    path = write_book(tmp_path / "a.ipynb", source, "2")
    before = path.read_bytes()
    said = run(path, cwd=tmp_path)
    assert said.returncode == 1
    assert named in said.stdout
    assert path.read_bytes() == before


def test_what_jupyterlab_adds_is_taken_away() -> None:
    """Run and saved in JupyterLab, a notebook differs by noise only: times, views, state, versions."""
    clean = book_with(v4.new_output("execute_result", {"text/plain": "IntSlider(value=3)"}, execution_count=1))
    regenerate.tidy(clean)
    noisy = copy.deepcopy(clean)
    noisy.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"a1": {}}}}
    noisy.metadata["language_info"] = {"name": "python", "version": "3.14.0"}
    cell = noisy.cells[0]
    cell.metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00"}
    cell.execution_count = cell.outputs[0].execution_count = 17
    cell.outputs[0].data[WIDGET_VIEW] = {"model_id": "a1"}
    regenerate.tidy(noisy)
    assert noisy == clean


def test_what_a_person_put_into_a_cell_stays() -> None:
    """Tags and slides are the author's."""
    book = book_with()
    book.cells[0].metadata.update(tags=["raises-exception"], slideshow={"slide_type": "slide"}, trusted=True)
    regenerate.tidy(book)
    assert book.cells[0].metadata == {"tags": ["raises-exception"], "slideshow": {"slide_type": "slide"}}


# --- what must not be stored ---


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"text/plain": "<object object at 0x7f00aa11bb22>"}, "at 0x7f00aa11bb22"),
        ({"text/plain": "a file", "text/html": f"<b>{Path.home()}</b>"}, "a folder of this machine"),
        ({"text/plain": str(Path(tempfile.gettempdir(), "tmpabc"))}, "a folder of this machine"),
        ({"text/plain": "In ipykernel_123/4.py"}, "ipykernel_123"),
        ({"text/plain": "<Figure size 640x480 with 1 Axes>", "image/png": "AAAA"}, "a picture without words"),
        ({"image/jpeg": "AAAA"}, "a picture without words"),
    ],
)
def test_what_is_different_elsewhere_is_a_fault(data: dict[str, str], fault: str) -> None:
    """An address, a process, a path of this machine, a picture that no comparison reads: each with its cell."""
    book = book_with(v4.new_output("display_data", data))
    (said,) = regenerate.find_faults(book)
    assert said.startswith("cell 0: ")
    assert fault in said


@pytest.mark.parametrize(
    "data",
    [
        {"text/plain": "Reminders by request\n1: 0\n4: 1", "image/png": f"AAAA{Path.home()}"},
        {"text/plain": "(TodoItem(content='ship', status='in_progress'),)"},
        {"text/plain": "the file is /tmp/a.txt, request 0x10"},
    ],
)
def test_what_is_the_same_everywhere_is_no_fault(data: dict[str, str]) -> None:
    """A figure with its words, plain values, and a path that a lesson speaks of may be stored."""
    assert list(regenerate.find_faults(book_with(v4.new_output("display_data", data)))) == []


def test_an_empty_cell_is_a_fault() -> None:
    """It has no count, so it looks as if somebody forgot to run it."""
    book = v4.new_notebook(cells=[v4.new_code_cell(" \n", id="one")])
    assert list(regenerate.find_faults(book)) == ["cell 0: empty; delete it"]


# --- which notebooks ---


def test_jupyterlabs_own_copies_are_left_out(tmp_path: Path) -> None:
    """A folder stands for the notebooks below it, each once, without checkpoints."""
    for name in ("b.ipynb", "solutions/a.ipynb", ".ipynb_checkpoints/b-checkpoint.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = regenerate.find_notebooks([tmp_path, tmp_path / "b.ipynb"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["b.ipynb", "solutions/a.ipynb"]


@pytest.mark.parametrize("words", [["nowhere.ipynb"], []])
def test_a_wrong_place_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """With nothing to run the exit code is 2, and the sentence says where to start."""
    assert regenerate.main(words or [str(tmp_path)]) == 2
    assert "the folder that holds notebooks/" in capsys.readouterr().err
