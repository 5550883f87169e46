"""Mutation testing of the core rooms: each small change to them must turn a test red, or be argued in reasons.toml.

python tests/mutation/run.py                    all four rooms, some forty minutes on two cores
python tests/mutation/run.py todos permissions  these rooms

It works on a copy, with mutmut (`pip install -e ".[mutation]"`; not on Windows, where mutmut does not run).
Exit status 1 if a mutant survives that no reason speaks of, or a reason speaks of none.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROOMS = ("todos", "permissions", "tools", "loop")
TESTS = [
    *("todos", "permissions", "tools", "loop", "hooks", "messages", "model", "profiles", "filetools", "scripted"),
    *("designs", "faults", "cases_a", "cases_b", "cases_c", "cases_g"),
]

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


def survivors(place: Path) -> dict[str, str]:
    """The diff of each mutant that no test noticed, by its name."""
    found = {}
    for meta in sorted((place / "mutants" / "labkit").glob("*.py.meta")):
        for name, code in json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"].items():
            if code in (0, 33):  # survived, or no test comes there
                shown = subprocess.run(
                    [sys.executable, "-m", "mutmut", "show", name],
                    cwd=place,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                lines = shown.stdout.splitlines()
                found[name] = "\n".join(one for one in lines if one[:1] in "+-" and one[:3] not in ("+++", "---"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--keep", type=Path, help="an empty folder for the copy, to look at afterwards")
    args = parser.parse_args()
    rooms = args.rooms or list(ROOMS)
    if set(rooms) - set(ROOMS):
        parser.error(f"the rooms are {', '.join(ROOMS)}")
    place = args.keep or Path(tempfile.mkdtemp(prefix="mutation"))
    for name in ("labkit", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("lab.py", "lab_quickjson.py", "README.md"):
        shutil.copy(ROOT / name, place)
    settings = SETTINGS.format(
        rooms=[f"labkit/{room}.py" for room in rooms], tests=[f"tests/test_{room}.py" for room in TESTS]
    )
    (place / "pyproject.toml").write_text(settings, encoding="utf-8")
    (place / "afresh.py").write_text(AFRESH, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "mutmut", "run"], cwd=place, check=True)

    reasons = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["equal"]
    reasons = [reason for reason in reasons if reason["room"] in rooms]
    used, bare = set(), 0
    for name, diff in survivors(place).items():
        at = [n for n, reason in enumerate(reasons) if reason["diff"].strip() == diff.strip()]
        used.update(at)
        if not at:
            bare += 1
            print(f"\n{name} survives:\n{diff}")
    for n, reason in enumerate(reasons):
        if n not in used:
            print(f"\nno mutant of {reason['room']} needs this reason any more:\n{reason['diff']}")
    print(f"\n{bare} without a reason, {len(used)} argued, {len(reasons) - len(used)} reasons too many")
    if not args.keep:
        shutil.rmtree(place)
    sys.exit(bool(bare or len(used) < len(reasons)))


if __name__ == "__main__":
    main()
