"""The README: what it shows is run, what it lists is there."""

import re
from pathlib import Path

import pytest

import labkit

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_first_code_block_does_what_its_comments_say() -> None:
    """The front door: text, stop reason, the reminder in request 4 only, the list."""
    names: dict = {}
    exec(compile(BLOCKS[0], "README.md", "exec"), names)
    result, model, agent = names["result"], names["model"], names["agent"]
    assert (result.text, result.stop_reason) == ("done", "completed")
    reminder = model.requests[3].messages[-1].content
    assert reminder.startswith("Keep the TODO list current.")
    holds = [any(message.content == reminder for message in request.messages) for request in model.requests]
    assert holds == [False, False, False, True, False]
    assert agent.todos == (labkit.TodoItem(content="ship", status="in_progress"),)
    assert len(result.rounds) == 5
    assert len(result.audit) == 4


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_every_other_code_block_runs(block: str) -> None:
    """What the README shows can be typed in."""
    exec(compile(block, "README.md", "exec"), {})


def test_the_public_names_are_all_listed() -> None:
    """A name that labkit exports has a line in the README, and no listed name is missing."""
    table = README.split("### Public names")[1].split("###")[0]
    listed = set(re.findall(r"`(\w+)", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    groups = {"Message", "Decision", "Effect"}
    profiles = {"P01", "P02", "P03", "P04", "P05", "Profile"}
    errors = {name for name in labkit.__all__ if name.endswith("Error")}
    inside = {"AgentRunner", "MessageView", "PermissionPolicy", "ToolRoundObserver", "Workspace"}
    assert set(labkit.__all__) - listed <= groups | profiles | errors | inside
    assert listed - set(labkit.__all__) == set()


def test_the_annotated_tree_is_the_tree() -> None:
    """Each file and folder of labkit's top has its line."""
    tree = README.split("labkit/\n")[1].split("tests/")[0]
    named = {name.rstrip("/") for name in re.findall(r"^  (\S+)", tree, re.MULTILINE)}
    there = {
        path.name
        for path in (ROOT / "labkit").iterdir()
        if path.name not in ("__init__.py", "__main__.py", "__pycache__", "py.typed", "chapters")
    }
    assert named == there


def test_each_notebook_has_its_line() -> None:
    """The routes name every notebook there is, by number and title."""
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        assert re.search(rf"^\| {path.name[:2]} ", README, re.MULTILINE), path.name


def test_the_glossary_is_in_two_languages() -> None:
    """Each term has a Chinese word and a meaning, and stands once."""
    rows = [line.split("|")[1:-1] for line in README.split("## Glossary")[1].splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 15
    assert all(re.search(r"[\u4e00-\u9fff]", row[1]) and row[2].strip() for row in rows)
    assert len({row[0] for row in rows}) == len(rows)
