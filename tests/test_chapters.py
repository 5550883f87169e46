"""The chapters' entries: three statements each, the router's options, one chapter that nothing changes."""

import ast
import json
import subprocess
import sys
from importlib import import_module
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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_importing_a_chapter_runs_nothing(chapter, capsys):
    """An import prints nothing and asks for no arguments."""
    import_module(f"labkit.chapters.ch{chapter:02}")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapter_runs_its_own_profile(chapter, folder, capsys):
    """The tools that the chapter's model may call are those of its profile, no more: others are unknown."""
    script = folder / "script.json"
    todo = {"call": "todo_write", "arguments": {"todos": []}}
    calls = [{"call": "glob", "arguments": {"pattern": "*"}}, {"call": "shell", "arguments": {"command": "x"}}, todo]
    script.write_text(json.dumps([{"calls": calls}, {"say": "done"}]), encoding="utf-8")
    main = import_module(f"labkit.chapters.ch{chapter:02}").main
    assert main(["--prompt", "go", "--workspace", str(folder), "--script", str(script)]) == 0
    unknown = capsys.readouterr().out.split("reply\n")[1].count("refused [unknown_tool]")
    has = PROFILES[chapter - 1].capabilities
    assert unknown == 3 - sum(["tools" in has, "permissions" in has, "todos" in has])


def test_a_chapter_given_to_a_chapter_is_ignored_and_said(folder):
    """`--chapter` does not change which chapter runs; a note says so."""
    script = folder / "script.json"
    script.write_text('[{"call": "glob", "arguments": {"pattern": "*"}}, {"say": "done"}]', encoding="utf-8")
    words = ["--chapter", "5", "--prompt", "go", "--script", str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "labkit.chapters.ch01", *words], cwd=folder, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("note: --chapter 5 is ignored; this is the entry of chapter 1\n")
    assert "refused [unknown_tool]" in done.stdout
