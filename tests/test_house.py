"""The rules the house stands on: style, types, what is in the wheel, and what no file may name."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What labkit itself must work without: everything a class or a served model needs, and all test tools.
OPTIONAL = ("openai", "ipywidgets", "IPython", "matplotlib", "nbclient", "nbformat", "playwright", "xllamacpp")
# In two pieces each, since this file is read too.
REGISTRIES = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "yarn" + "pkg.com",
    "anaconda" + ".org",
    "anaconda" + ".com",
    "proxy.golang" + ".org",
    "crates" + ".io",
]
MACHINE_PATHS = ["/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/", ":\\Us" + "ers\\", "/tmp/" + "dev", "/wo" + "rk/"]

SOMEBODY = "/ho" + "me/somebody"  # nobody's home: what a test may say when it needs one


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; the caller looks at the exit code, and shows the output if it is wrong."""
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    words = list(map(str, command))
    return subprocess.run(
        words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )


def module(*words: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """`python -m words` with the Python that runs the tests."""
    return run(sys.executable, "-m", *words, cwd=cwd)


@pytest.mark.skipif(os.name == "nt", reason="no shell there starts anything with Ctrl-C ignored")
def test_tests_started_in_the_background_hear_ctrl_c() -> None:
    """What the tests start hears Ctrl-C, also where a shell started the tests with Ctrl-C ignored."""
    here = "import conftest, signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", here]
    assert run(*words, cwd=ROOT / "tests").stdout == "True\n"


# --- style and types ---


def test_ruff_finds_nothing() -> None:
    """Package, tests, scripts and notebooks keep the rules chosen in pyproject.toml."""
    said = module("ruff", "check", ".")
    assert said.returncode == 0, said.stdout


def test_everything_is_formatted() -> None:
    """`ruff format` would change no file."""
    said = module("ruff", "format", "--check", ".")
    assert said.returncode == 0, said.stdout


def test_types_are_strict() -> None:
    """mypy, strict, finds nothing in what pyproject.toml lists: labkit and lab.py among it."""
    said = module("mypy")
    assert said.returncode == 0, said.stdout


def test_each_test_says_what_it_holds() -> None:
    """Each test has a sentence that states its rule."""
    silent = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                sentence = (ast.get_docstring(node) or "").rstrip()
                if not sentence.endswith((".", "?", "!")):
                    silent.append(f"{path.name}: {node.name}")
    assert silent == []


# --- the wheel ---


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without network from a copy, since a build leaves its rests beside the sources."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "labkit", source / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    said = module("build", "--wheel", "--no-isolation", "--outdir", source / "dist", ".", cwd=source)
    assert said.returncode == 0, said.stdout
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts' folder of an empty environment that holds the wheel, and sees this one's pydantic."""
    folder = tmp_path_factory.mktemp("空 environment")
    said = module("venv", "--without-pip", folder)
    assert said.returncode == 0, said.stdout
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    said = module("pip", "--python", python, "install", "--no-deps", "--no-index", "--disable-pip-version-check", wheel)
    assert said.returncode == 0, said.stdout
    # A path line in a .pth file adds the folder, but not that folder's own .pth files: no editable labkit comes along.
    (site,) = folder.rglob("site-packages")
    (site / "pydantic_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return scripts


def test_the_wheel_holds_the_package_and_all_its_data(wheel: Path) -> None:
    """Each file under labkit/ is in the wheel, and nothing else is: no tests, no lab.py."""
    names = set(zipfile.ZipFile(wheel).namelist())
    packed = {name for name in names if ".dist-info/" not in name}
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "labkit").rglob("*") if path.is_file()}
    assert packed == {name for name in files if "__pycache__" not in name}
    assert "labkit/py.typed" in packed


def test_the_wheel_needs_pydantic_only(wheel: Path) -> None:
    """Everything but pydantic is an extra."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        lines = packed.read(name).decode("utf-8").splitlines()
    needed = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert [line.split()[1].partition("<")[0].partition(">")[0] for line in needed] == ["pydantic"]


def test_the_installed_package_is_the_wheels(installed: Path, tmp_path: Path) -> None:
    """In an empty environment `import labkit` finds what the wheel brought, not this checkout."""
    said = run(installed / "python", "-c", "import labkit; print(labkit.__file__)", cwd=tmp_path)
    assert said.returncode == 0, said.stdout
    assert Path(said.stdout.strip()).is_relative_to(installed.parent)


@pytest.mark.parametrize("command", [["labkit"], ["python", "-m", "labkit"]], ids=" ".join)
def test_the_installed_command_line_runs(installed: Path, tmp_path: Path, command: list[str]) -> None:
    """`labkit --help` and `python -m labkit --help` work from the wheel."""
    said = run(installed / command[0], *command[1:], "--help", cwd=tmp_path)
    assert said.returncode == 0, said.stdout
    assert "usage: labkit" in said.stdout


# --- imports ---


def test_labkit_needs_none_of_its_extras() -> None:
    """With every optional package blocked, `import labkit` works: the core is pydantic and the standard library."""
    block = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))"  # None blocks an import
    said = run(sys.executable, "-c", f"{block}; import labkit; labkit.build_agent")
    assert said.returncode == 0, said.stdout


def test_importing_labkit_imports_none_of_its_extras() -> None:
    """Where they are there, `import labkit` still does not pay for them."""
    said = run(sys.executable, "-c", f"import sys, labkit; print(set({OPTIONAL!r}) & set(sys.modules))")
    assert said.stdout.strip() == "set()"


# --- what no file may name ---


def tracked() -> list[Path]:
    """The files of the repository; of a download without git, all that no tool made."""
    listed = run("git", "ls-files", "-z") if (ROOT / ".git").exists() and shutil.which("git") else None
    if listed and listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name]
    made = {".venv", "__pycache__", "build", "dist", ".git"}
    return [p for p in ROOT.rglob("*") if p.is_file() and not made & set(p.parts) and not p.name.endswith(".pyc")]


def lines_with(words: list[str]) -> list[str]:
    """Where tracked text files hold one of the words."""
    found = []
    for path in tracked():
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            said = line.replace(SOMEBODY, "")
            found += [f"{path.relative_to(ROOT)}:{number}: {word}" for word in words if word in said]
    return found


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the user's setting, so that a mirror works without a change."""
    assert lines_with(REGISTRIES) == []


def test_no_file_names_a_place_on_one_machine() -> None:
    """No absolute path of the machine it was made on, in code, text or output."""
    assert lines_with([*MACHINE_PATHS, str(ROOT) + os.sep]) == []


def test_tracked_files_are_seen() -> None:
    """The two rules above look at this very file, so they cannot pass by looking at nothing."""
    assert Path(__file__).resolve() in [path.resolve() for path in tracked()]
