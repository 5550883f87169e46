"""The other ways into the lab, conda and the users' own CI, say the same as pyproject.toml."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import lab

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [Version(f"3.{minor}") for minor in range(30)]


def read_yaml(name: str) -> Any:
    """A YAML file of the repository; `on:` is read as the word it is, not as a truth value."""
    return yaml.load((ROOT / name).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


CONDA = read_yaml("environment.yml")
WORKFLOW = read_yaml(".github/workflows/ci.yml")
CONSTRAINTS = sorted((ROOT / "constraints").glob("*.txt"))


def pins(path: Path) -> list[str]:
    """The lines of a constraints file that are not comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def all_requirements() -> list[Requirement]:
    """Everything pyproject.toml asks for, itself left out."""
    extras = PROJECT["optional-dependencies"].values()
    asked = [Requirement(text) for text in itertools.chain(PROJECT["dependencies"], *extras)]
    return [requirement for requirement in asked if requirement.name != PROJECT["name"]]


# --- conda and Binder ---


def test_environment_yml_leaves_the_packages_to_pyproject() -> None:
    """Conda brings Python and pip; the packages come from this folder, so there is no second list that could drift."""
    assert set(CONDA) == {"name", "channels", "dependencies"}
    assert CONDA["name"] == PROJECT["name"]
    *conda, pip = CONDA["dependencies"]
    assert [line.split()[0] for line in conda] == ["python", "pip"]
    assert pip == {"pip": ["-e .[lab,test]"]}


def test_environment_yml_names_the_free_channel_only() -> None:
    """The licensed default channel is switched off."""
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]


def test_the_extras_that_conda_installs_exist() -> None:
    """`-e .[lab,test]` names extras of pyproject.toml; pip would only warn about others."""
    extras = Requirement(f"lab{CONDA['dependencies'][-1]['pip'][0].removeprefix('-e .')}").extras
    assert extras
    assert extras <= set(PROJECT["optional-dependencies"])


def test_one_range_of_pythons_everywhere() -> None:
    """pyproject.toml, environment.yml and lab.py admit the same Pythons."""
    project = SpecifierSet(PROJECT["requires-python"])
    conda = SpecifierSet(CONDA["dependencies"][0].removeprefix("python "))
    known = [v for v in PYTHONS if lab.OLDEST <= (v.major, v.minor) < lab.TOO_NEW]
    assert [v for v in PYTHONS if v in project] == known
    assert [v for v in PYTHONS if v in conda] == known


# --- constraints ---


def test_there_are_constraints_for_the_oldest_python() -> None:
    """The outputs are stored with the oldest Python, so its versions are the recorded ones."""
    assert [path.stem for path in CONSTRAINTS] == [f"{lab.OLDEST[0]}.{lab.OLDEST[1]}"]


@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.stem)
def test_constraints_are_plain_pins(path: Path) -> None:
    """Each line is name==version once, in order, with no address and without the project itself."""
    names = [line.partition("==")[0] for line in pins(path)]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in pins(path))
    assert len({canonicalize_name(name) for name in names}) == len(names)
    assert PROJECT["name"] not in names


@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("requirement", all_requirements(), ids=lambda requirement: requirement.name)
def test_constraints_lie_within_the_bounds(requirement: Requirement, path: Path) -> None:
    """Each thing that pyproject.toml asks for is pinned, to a version that it admits."""
    pinned = {canonicalize_name(n): v for n, _, v in (line.partition("==") for line in pins(path))}
    assert pinned[canonicalize_name(requirement.name)] in requirement.specifier


# --- the users' CI ---


def test_workflow_covers_the_promised_systems_and_pythons() -> None:
    """Linux, macOS and Windows, each with the oldest and the newest Python that pyproject.toml admits."""
    matrix = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]
    supported = [str(v) for v in PYTHONS if v in SpecifierSet(PROJECT["requires-python"])]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == [supported[0], supported[-1]]


def test_workflow_runs_the_readmes_command_in_an_awkward_folder() -> None:
    """The test command runs in a folder whose name has a space and Chinese characters, the one checked out into."""
    job = WORKFLOW["jobs"]["test"]
    folder = job["defaults"]["run"]["working-directory"]
    assert " " in folder
    assert re.search("[\u4e00-\u9fff]", folder)
    assert job["steps"][0]["with"]["path"] == folder
    assert "python lab.py test" in [step.get("run") for step in job["steps"]]


def test_workflow_may_only_read() -> None:
    """A pull request's code runs with no right to write to the repository."""
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_notebooks_are_compared_strictly() -> None:
    """pytest's own settings, which every CI uses, compare outputs strictly and keep each notebook on one worker."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    words = options["addopts"].split()
    assert {"--nbval", "--nbval-current-env", "--strict-markers", "--strict-config"} <= set(words)
    assert "--nbval-lax" not in words
    assert words[words.index("--dist") + 1] == "loadfile"
    assert "notebooks" in options["testpaths"]
