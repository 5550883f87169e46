"""Mutation testing of the core rooms: each small change to them must turn a test red, or be argued in reasons.toml.

python tests/mutation/run.py                    all four rooms, some thirty minutes on two cores
python tests/mutation/run.py todos permissions  these rooms

It works on a copy, with mutmut (`pip install -e ".[mutation]"`; not on Windows, where mutmut does not run). With
`--keep FOLDER` the copy stays, and a later run in it tries only the functions that changed and what survived.
Exit status 1 if a mutant survives that no reason speaks of, or a reason speaks of none.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROOMS = ("todos", "permissions", "tools", "loop")
TESTS = [
    *("todos", "permissions", "tools", "loop", "hooks", "messages", "model", "profiles", "filetools", "scripted"),
    *("designs", "faults", "cases_a", "cases_b", "cases_c", "cases_g"),
]

KILLED, SURVIVED, UNTESTED = 1, 0, 33
"""mutmut's codes; any other is a time-out or a crash, which was noticed too."""

SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["."]
filterwarnings = ["error"]

[tool.mutmut]
source_paths = ["labkit"]
only_mutate = {rooms}
also_copy = ["afresh.py", "lab.py", "lab_quickjson.py", "README.md"]
pytest_add_cli_args = [
    "-p", "no:xdist", "-p", "no:nbval", "-p", "no:cacheprovider", "-p", "afresh", "--hypothesis-profile=mutation",
    # It steps through the instructions of a function, of which mutmut makes others.
    "--deselect=tests/test_faults.py::test_an_interrupt_within_a_line_neither_loses_a_round_nor_doubles_it",
]
pytest_add_cli_args_test_selection = {tests}
process_isolation = "forkserver"  # a process that has run tests has had threads, and its forks hang
timeout_multiplier = 3.0
timeout_constant = 10.0
"""

# A mutant begins in a process that has made the schemas of the built-in tools already: they are to be made again.
# mutmut names tests in no order; most mutants fall to a short one.
AFRESH = """
from labkit.tools import input_schema


def pytest_configure():
    input_schema.cache_clear()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ("test_faults" in item.nodeid, hasattr(item.function, "hypothesis"), item.nodeid))
"""


def survivors(place: Path) -> Iterator[tuple[str, str, str]]:
    """Each mutant that no test noticed: its name, the line as it was, and the line it became."""
    for meta in sorted((place / "mutants" / "labkit").glob("*.py.meta")):
        for name, code in json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"].items():
            if code in (SURVIVED, UNTESTED):
                command = [sys.executable, "-m", "mutmut", "show", name]
                shown = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
                lines = [line for line in shown.splitlines() if not line.startswith(("---", "+++"))]
                before, after = ("\n".join(line[1:].strip() for line in lines if line[:1] == one) for one in "-+")
                yield name, before, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the copy is to be made, or was")
    args = parser.parse_args()
    rooms = args.rooms or list(ROOMS)
    if set(rooms) - set(ROOMS):
        parser.error(f"the rooms are {', '.join(ROOMS)}")
    with tempfile.TemporaryDirectory(prefix="mutation") as scratch:
        sys.exit(not all_argued(rooms, args.keep or Path(scratch)))


def all_argued(rooms: list[str], place: Path) -> bool:
    """Make and try the mutants of these rooms in a copy at this place; whether each that survives has its reason."""
    for name in ("labkit", "tests"):
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("lab.py", "lab_quickjson.py", "README.md"):
        shutil.copy(ROOT / name, place)
    settings = SETTINGS.format(
        rooms=[f"labkit/{room}.py" for room in rooms], tests=[f"tests/test_{room}.py" for room in TESTS]
    )
    (place / "pyproject.toml").write_text(settings, encoding="utf-8")
    (place / "afresh.py").write_text(AFRESH, encoding="utf-8")
    for meta in (place / "mutants" / "labkit").glob("*.py.meta"):
        found = json.loads(meta.read_text(encoding="utf-8"))
        codes = found["exit_code_by_key"]
        found["exit_code_by_key"] = {name: code if code == KILLED else None for name, code in codes.items()}
        meta.write_text(json.dumps(found), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "mutmut", "run"], cwd=place, check=True)

    reasons = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["equal"]
    argued = {(one["room"], one["before"], after) for one in reasons if one["room"] in rooms for after in one["after"]}
    needed, bare = set(), 0
    for name, before, after in survivors(place):
        key = (name.split(".")[1], before, after)
        if key in argued:
            needed.add(key)
        else:
            bare += 1
            print(f"\n{name} survives:\n- {before}\n+ {after}")
    for room, before, after in sorted(argued - needed):
        print(f"\na reason that no mutant of {room} needs:\n- {before}\n+ {after}")
    print(f"\n{bare} survive without a reason, {len(needed)} with one; {len(argued - needed)} reasons are not needed")
    return not (bare or argued - needed)


if __name__ == "__main__":
    main()
