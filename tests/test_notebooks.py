"""Notebooks stay comparable: what the strict comparison does not look at, and what a second run must give again.

nbval compares the stored outputs with a new run. It does not see a notebook that was never run, a picture, a widget, a
mark that switches it off, or output that is only right on one machine. `find_faults` does, and it is short enough to
read. Each of its rules is broken once below.
"""

import ast
import copy
import re
from pathlib import Path

import nbformat
import pytest

from labkit.classroom.regenerate import execute, tidy

FOLDER = Path(__file__).parents[1] / "notebooks"
BOOKS = [path for path in sorted(FOLDER.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
TAGS = {"raises-exception"}
LINES = 10
# Only these may show ten lines or more: they are looked at, not read through.
LONG = ("frames_of(", "Stepper", "side_by_side(", "inspect.getsource(", "getsource(", "comparison(")
FIGURE = "Figure: "
UNSTABLE = re.compile(
    r"\bat 0x[0-9a-fA-F]{6,}|ipykernel_\d|/(?:tmp|home|Users|root|var/folders)/\w|\b[A-Za-z]:\\Users|site-packages"
)
MAGIC = re.compile(r"^\s*[%!]|get_ipython\(|\bpip install\b", re.MULTILINE)
FORBIDDEN = ("sys.path", "filterwarnings", "simplefilter", "clear_output", "NBVAL_", "# PYTEST_VALIDATE")
READABLE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RANDOM = re.compile(r"[0-9a-f]{8}|[0-9a-f-]{36}")
each_book = pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())


def find_faults(book):
    """What is wrong with a notebook as it is stored, one line each; it is not run."""
    nbformat.validate(book)  # also: no id twice
    if "widgets" in book.metadata:
        yield "holds the state of widgets"
    if book.metadata.get("language_info") != {"name": "python"}:
        yield "holds the language of one machine"
    if len(book.cells) < 2 or book.cells[1].cell_type != "code" or not imports(book.cells[1]):
        yield "the second cell is not the imports"
    ran = compared = 0
    for at, cell in enumerate(book.cells):
        if not READABLE.fullmatch(cell.id) or RANDOM.fullmatch(cell.id):
            yield f"{cell.id}: not a readable id"
        if not set(cell.metadata.get("tags", ())) <= TAGS:
            yield f"{cell.id}: a tag that is not known"
        if cell.cell_type != "code":
            continue
        ran += 1
        compared += len(cell.outputs)
        if cell.execution_count != ran:
            yield f"{cell.id}: not run, or not in order"
        yield from (f"{cell.id}: {fault}" for fault in source_faults(cell, at == 1))
        for output in cell.outputs:
            yield from (f"{cell.id}: {fault}" for fault in output_faults(cell, output))
    if not compared:
        yield "nothing is compared"


def source_faults(cell, second):
    """What must not stand in a cell."""
    if cell.source.rstrip().endswith(";"):
        yield "a semicolon at the end hides nothing where outputs are compared"
    if MAGIC.search(cell.source):
        yield "a magic"
        return  # no Python to parse
    for word in FORBIDDEN:
        if word in cell.source:
            yield f"holds {word}"
    if not second and imports(cell):
        yield "imports belong into the second cell"
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("input", "getpass"):
            yield f"calls {node.func.id}()"


def output_faults(cell, output):
    """What must not be stored as an output."""
    data = output.get("data", {})
    words = output.get("text", "") or data.get("text/plain", "")
    if output.get("name") == "stderr":
        yield "writes to stderr"
    if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", ()):
        yield "ended with an error"
    if any(kind.startswith("application/vnd.jupyter.widget") for kind in data):
        yield "holds the view of a widget"
    if any(kind.startswith("image/") and kind != "image/svg+xml" for kind in data) and not words.startswith(FIGURE):
        yield "a picture without words"
    if words.count("\n") + (not words.endswith("\n")) >= LINES and not may_be_long(cell, words):
        yield f"shows {LINES} lines or more"
    for text in (words, output.get("evalue", ""), *map(str, data.values())):
        if found := UNSTABLE.search(text):
            yield f"shows {found.group()!r}, which is another elsewhere"
            break


def may_be_long(cell, words):
    """Frames, steppers, figures, tables and shown source."""
    return words.startswith(FIGURE) or any(name in cell.source for name in LONG)


def imports(cell):
    """Does this cell import anything?"""
    if MAGIC.search(cell.source):
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(ast.parse(cell.source)))


def read(path):
    return nbformat.read(path, as_version=4)


# ---- every notebook ----


def test_there_are_notebooks():
    """The two signature notebooks are among those found: a guard over nothing would be green."""
    assert {"07_todo_write", "08_fourth_request"} <= {path.stem for path in BOOKS}


@each_book
def test_a_notebook_can_be_compared(path):
    """It was run from top to bottom, holds nothing that comparison skips, and nothing of one machine."""
    assert list(find_faults(read(path))) == []


@each_book
def test_a_second_run_gives_the_same(path):
    """All cells twice in one kernel: both times the stored bytes (so regenerating changes nothing)."""
    stored = path.read_text(encoding="utf-8")
    book = nbformat.reads(stored, as_version=4)
    cells = book.cells
    again = copy.deepcopy(cells)
    for cell in again:
        cell.id += "-again"
    book.cells = cells + again
    execute(book, path.parent)
    tidy(book)
    # Outputs carry the count of their cell.
    told = [[{**one, "execution_count": None} for one in cell.get("outputs", ())] for cell in book.cells]
    for cell, first, second in zip(cells, told, told[len(cells) :], strict=False):
        assert first == second, f"{cell.id} differs the second time"
    book.cells = book.cells[: len(cells)]
    assert nbformat.writes(book).rstrip("\n") + "\n" == stored


# ---- the guard itself: each rule is broken once ----


def code(book, **fields):
    """The last code cell of a small good notebook, changed."""
    for name, value in fields.items():
        book.cells[-1][name] = value


def shows(book, text="1", **data):
    """The last cell's output, replaced."""
    book.cells[-1].outputs[0].data = nbformat.from_dict({"text/plain": text, **data})


def stream(book, name):
    book.cells[-1].outputs = [nbformat.v4.new_output("stream", name=name, text="x\n")]


def good():
    """A notebook in which nothing is wrong."""
    v4 = nbformat.v4
    book = v4.new_notebook(
        metadata={"language_info": {"name": "python"}},
        cells=[
            v4.new_markdown_cell("# A title", id="title"),
            v4.new_code_cell("import json", id="imports", execution_count=1),
            v4.new_code_cell("json.loads('1')", id="run-one", execution_count=2),
        ],
    )
    book.cells[-1].outputs = [v4.new_output("execute_result", {"text/plain": "1"}, execution_count=2)]
    return book


BREAKS = {
    "not run": (lambda book: code(book, execution_count=None), "run-one: not run, or not in order"),
    "out of order": (lambda book: code(book, execution_count=9), "run-one: not run, or not in order"),
    "stripped": (lambda book: code(book, outputs=[]), "nothing is compared"),
    "a tag": (lambda book: code(book, metadata={"tags": ["nbval-skip"]}), "run-one: a tag that is not known"),
    "a mark": (lambda book: code(book, source="# NBVAL_SKIP\n1"), "run-one: holds NBVAL_"),
    "a semicolon": (lambda book: code(book, source="1;"), "run-one: a semicolon at the end"),
    "widget state": (lambda book: book.metadata.update(widgets={}), "holds the state of widgets"),
    "a language": (lambda book: book.metadata.language_info.update(version="3"), "holds the language of one machine"),
    "a view": (
        lambda book: shows(book, **{"application/vnd.jupyter.widget-view+json": {"model_id": "x"}}),
        "run-one: holds the view of a widget",
    ),
    "a picture": (lambda book: shows(book, **{"image/png": "eA=="}), "run-one: a picture without words"),
    "a photo": (lambda book: shows(book, **{"image/jpeg": "eA=="}), "run-one: a picture without words"),
    "an address": (lambda book: shows(book, "<X at 0x7f00aa11bb>"), "run-one: shows 'at 0x7f00aa11bb'"),
    "a path": (lambda book: shows(book, "PosixPath('" + "/tm" + "p/x')"), "run-one: shows '/tm"),
    "a path in html": (lambda book: shows(book, **{"text/html": "/ho" + "me/me"}), "run-one: shows '/ho"),
    "a Windows path": (lambda book: shows(book, "C:" + "\\Us" + "ers\\me"), "run-one: shows "),
    "a process": (lambda book: shows(book, "ipykernel_12/1.py"), "run-one: shows 'ipykernel_1'"),
    "a magic": (lambda book: code(book, source="%time 1"), "run-one: a magic"),
    "pip": (lambda book: code(book, source="!pip install x"), "run-one: a magic"),
    "sys.path": (lambda book: code(book, source="sys.path.insert(0, '.')"), "run-one: holds sys.path"),
    "a filter": (lambda book: code(book, source="warnings.filterwarnings('ignore')"), "run-one: holds filterwarnings"),
    "input": (lambda book: code(book, source="input('?')"), "run-one: calls input()"),
    "stderr": (lambda book: stream(book, "stderr"), "run-one: writes to stderr"),
    "an error": (
        lambda book: code(book, outputs=[nbformat.v4.new_output("error", ename="E", evalue="x", traceback=[])]),
        "run-one: ended with an error",
    ),
    "ten lines": (lambda book: shows(book, "\n".join("x" * 10)), "run-one: shows 10 lines or more"),
    "a random id": (lambda book: code(book, id="1f9c0aab"), "1f9c0aab: not a readable id"),
    "a random id of letters": (lambda book: code(book, id="abcdefab"), "abcdefab: not a readable id"),
    "a late import": (lambda book: code(book, source="import re"), "run-one: imports belong into the second cell"),
    "no imports": (lambda book: book.cells[1].update(source="1"), "the second cell is not the imports"),
}


def test_a_good_notebook_has_no_faults():
    """The control: without this, a guard that always complains would pass the tests below."""
    assert list(find_faults(good())) == []


@pytest.mark.parametrize("name", BREAKS)
def test_the_guard_sees(name):
    """Each rule, broken in an otherwise good notebook, is named."""
    broken, fault = BREAKS[name]
    book = good()
    broken(book)
    found = list(find_faults(book))
    assert any(one.startswith(fault) for one in found), found


@pytest.mark.parametrize(
    ("source", "text"),
    [("frames_of(result)", ""), ("Stepper(result)", ""), ("print(inspect.getsource(f))", ""), ("x", FIGURE)],
)
def test_what_may_be_long(source, text):
    """Frames, steppers, shown source and figures may show ten lines or more; a figure may hold a picture."""
    book = good()
    code(book, source=source)
    shows(book, text + "\n".join("x" * 30), **({"image/png": "eA=="} if text else {}))
    assert list(find_faults(book)) == []
