"""Run the notebooks again and store their outputs, so that the same code always gives the same bytes.

    python -m labkit.classroom.regenerate                   all under notebooks/
    python -m labkit.classroom.regenerate FILE ...          only these
    python -m labkit.classroom.regenerate --check           write nothing; fail if a run would change a file

Edit in JupyterLab, save, run this, commit. What differs from run to run without meaning anything (times, widget ids,
the Python version, how a stream was cut into pieces, tracebacks) is not stored. What must not be stored at all is
named, cell by cell, and the exit code is 1: a path or an address of this machine, a picture without words.

Start reading at `regenerate`. It does not judge whether an output is right: the tests compare, people read.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The same as lab_quickjson.py beside the package, for the same 1.6 seconds; this one starts without pytest.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None blocks an import

import nbformat  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError  # noqa: E402

CELL_SECONDS = 120
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# Of a cell's metadata, what a person put there; the rest is an editor's.
KEPT = ("editable", "jupyter", "slideshow", "tags")
WIDGET = "application/vnd.jupyter.widget-"
PICTURES = ("image/png", "image/jpeg")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# The repr of an object that has no words of its own: <Figure size 640x480 with 1 Axes>.
BARE = re.compile(r"<[^<>\n]*>")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
PROCESS = re.compile(r"ipykernel_\d+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one notebook: is the file as a fresh run would write it, and what stands against storing it."""

    path: Path
    same: bool
    faults: tuple[str, ...] = ()


def regenerate(path: Path, *, check: bool = False) -> Outcome:
    """Run one notebook on a fresh kernel in its own folder; store the result unless `check` or a fault forbids it."""
    before = path.read_text(encoding="utf-8")
    book = nbformat.reads(before, as_version=4)
    try:
        execute(book, path.parent)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return Outcome(path, False, (f"did not run to its end: {COLOUR.sub('', str(error)).strip()}",))
    tidy(book)
    faults = tuple(find_faults(book))
    after = nbformat.writes(book).rstrip("\n") + "\n"
    if after != before and not check and not faults:
        replace(path, after)
    return Outcome(path, after == before, faults)


def execute(book: Any, folder: Path) -> None:
    """Run all cells from the first to the last; what was stored before plays no part."""
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    # subtle: nbclient's store_widget_state=False breaks on captured output, so the state is dropped in `tidy`.
    NotebookClient(
        book,
        kernel_name="python3",
        # Each kernel would warn that it talks over loopback unencrypted.
        extra_arguments=["--log-level=ERROR"],
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        timeout=CELL_SECONDS,
        # Outputs that come late are waited for, and missing ones an error: else nbclient goes on without them.
        iopub_timeout=CELL_SECONDS,
        raise_on_iopub_timeout=True,
    ).execute()


def tidy(book: Any) -> None:
    """Leave in the notebook only what the same code gives again."""
    book.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    count = 0
    for cell in book.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in KEPT if key in cell.metadata})
        if cell.cell_type != "code":
            continue
        if cell.source.strip():
            count += 1
            cell.execution_count = count
        else:
            cell.execution_count = None
        cell.outputs = [tidy_output(output, cell.execution_count) for output in joined(cell.outputs)]


def joined(outputs: list[Any]) -> list[Any]:
    """Each stream in one piece, at the place of its first: where the kernel flushed is chance."""
    streams: dict[str, Any] = {}
    result = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].text += output.text
                continue
            streams[output.name] = output
        result.append(output)
    return result


def tidy_output(output: Any, count: int | None) -> Any:
    """One output without widget views and without the lines of a traceback."""
    if output.output_type == "execute_result":
        output.execution_count = count
    if output.output_type == "error":
        # The frames hold paths and colours; the tests compare name and value.
        output.traceback = [f"{output.ename}: {COLOUR.sub('', output.evalue)}"]
    if "data" in output:
        # A view without a live kernel shows as an error; beside it stand text and html for readers.
        output.data = nbformat.from_dict({k: v for k, v in output.data.items() if not k.startswith(WIDGET)})
    return output


def find_faults(book: Any) -> Iterator[str]:
    """What must not be stored, one sentence for each, with what to do about it."""
    own = places()
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "code" and not cell.source.strip():
            yield f"cell {number}: empty; delete it"
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            words = data.get("text/plain", "").strip()
            if any(kind in data for kind in PICTURES) and (not words or BARE.fullmatch(words)):
                yield f"cell {number}: a picture without words; show one of labkit's figures, which has both"
            for text in texts(output):
                if match := ADDRESS.search(text) or PROCESS.search(text):
                    yield f"cell {number}: {match.group()!r} is different in each run; print what the reader needs"
                for place in own:
                    if place in text:
                        yield f"cell {number}: names {place!r}, a folder of this machine; print a relative path"


def texts(output: Any) -> Iterator[str]:
    """Each text of an output that a reader sees."""
    for text in (output.get("text"), output.get("evalue"), *output.get("data", {}).items()):
        if isinstance(text, str):
            yield text
        elif isinstance(text, tuple) and text[0] not in PICTURES:
            yield str(text[1])


def places() -> list[str]:
    """Folders that are somewhere else on the next machine."""
    # A lesson may speak of /tmp; a folder that tempfile made has a name by chance.
    made = os.path.join(tempfile.gettempdir(), tempfile.gettempprefix())
    found = {str(Path.home()), str(Path.cwd()), made, sys.prefix}
    return sorted(place for place in found if len(place) > 3)


def replace(path: Path, text: str) -> None:
    """Write the file whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8", newline="\n")
    os.replace(new, path)


def find_notebooks(paths: Sequence[Path]) -> list[Path]:
    """The notebooks named, and those in the folders named, without JupyterLab's own copies."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def main(words: Sequence[str] | None = None) -> int:
    """Regenerate or check, and return 0 only if every notebook is as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m labkit.classroom.regenerate",
        description="Run notebooks again and store their outputs; the same code gives the same bytes.",
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("notebooks")], help="default: notebooks/")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a run would change a file")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many run at once (2)")
    options = parser.parse_args(words)
    books = find_notebooks(options.paths)
    missing = [str(path) for path in books if not path.is_file()]
    if missing or not books:
        what = ", ".join(missing) or "no notebook under " + ", ".join(map(str, options.paths))
        print(f"not found: {what}; start this from the folder that holds notebooks/", file=sys.stderr)
        return 2
    failed = False
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for outcome in pool.map(lambda path: regenerate(path, check=options.check), books):
            failed |= report(outcome, check=options.check)
    return int(failed)


def report(outcome: Outcome, *, check: bool) -> bool:
    """Print one line or more for a notebook; True if it is not as it should be."""
    for fault in outcome.faults:
        print(f"{outcome.path}: {fault}")
    if outcome.faults:
        return True
    if outcome.same:
        print(f"{outcome.path}: unchanged")
        return False
    print(
        f"{outcome.path}: " + ("stale; run this without --check and look at the difference" if check else "rewritten")
    )
    return check


if __name__ == "__main__":
    sys.exit(main())
