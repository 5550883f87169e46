"""The chapters' entries: three statements each, the router's options, one chapter that nothing changes."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.profiles import PROFILES

FOLDER = Path(__file__).parents[1] / "labkit" / "chapters"
CHAPTERS = range(1, 6)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_three_statements(chapter):
    """An import, the entry, and the call of it under the name guard; nothing else is in the file."""
    tree = ast.parse((FOLDER / f"ch{chapter:02}.py").read_text(encoding="utf-8"))
    assert [type(one) for one in tree.body[1:]] == [ast.ImportFrom, ast.Assign, ast.If]
    assert ast.get_docstring(tree)
    assert ast.unparse(tree.body[3].test) == "__name__ == '__main__'"


def entry(chapter, *words, cwd):
    """`python -m labkit.chapters.chNN words`, to its end, with no terminal."""
    return subprocess.run(
        [sys.executable, "-m", f"labkit.chapters.ch{chapter:02}", *map(str, words)],
        cwd=cwd,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


def test_importing_a_chapter_runs_nothing():
    """A fresh process that imports all five, with arguments that none of them knows, prints nothing and goes on."""
    code = "import " + ", ".join(f"labkit.chapters.ch{chapter:02}" for chapter in CHAPTERS)
    done = subprocess.run([sys.executable, "-c", code, "--nonsense"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapter_runs_its_own_profile(chapter, folder):
    """The tools that the chapter's model may call are those of its profile, no more: others are unknown."""
    script = folder / "script.json"
    todo = {"call": "todo_write", "arguments": {"todos": []}}
    calls = [{"call": "glob", "arguments": {"pattern": "*"}}, {"call": "shell", "arguments": {"command": "x"}}, todo]
    script.write_text(json.dumps([{"calls": calls}, {"say": "done"}]), encoding="utf-8")
    done = entry(chapter, "--prompt", "go", "--script", script, cwd=folder)
    assert done.returncode == 0, done.stderr
    unknown = done.stdout.split("reply\n")[1].count("refused [unknown_tool]")
    has = PROFILES[chapter - 1].capabilities
    assert unknown == 3 - sum(["tools" in has, "permissions" in has, "todos" in has])


def test_a_chapter_given_to_a_chapter_is_ignored_and_said(folder):
    """`--chapter` does not change which chapter runs; a note says so."""
    script = folder / "script.json"
    script.write_text('[{"call": "glob", "arguments": {"pattern": "*"}}, {"say": "done"}]', encoding="utf-8")
    done = entry(1, "--chapter", "5", "--prompt", "go", "--script", script, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("note: --chapter 5 is ignored; this is the entry of chapter 1\n")
    assert "refused [unknown_tool]" in done.stdout
