"""Five tools over one workspace: what each says when it can, and when it can't."""

import json
import sys
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labkit import ToolCall, ToolRegistry, ToolResult, Workspace
from labkit.errors import WorkspaceError
from labkit.filetools import GLOB_LIMIT, READ_LIMIT, SHELL_LIMIT, _edited, file_tools, shell_tool

posix = pytest.mark.skipif(sys.platform == "win32", reason="sh")


@pytest.fixture
def use(folder):
    """A call of one tool, as the loop makes it."""
    registry = ToolRegistry((*file_tools(Workspace(folder)), shell_tool(Workspace(folder))))

    def use(name, **arguments):
        prepared = registry.prepare(ToolCall("c", name, json.dumps(arguments)))
        return prepared if isinstance(prepared, ToolResult) else registry.invoke(prepared)

    return use


def test_the_tools_their_effects_and_their_paths(folder):
    """Names in this order, what each does to the world, and how the boundary finds where."""
    tools = (*file_tools(Workspace(folder)), shell_tool(Workspace(folder)))
    assert [(tool.name, tool.effect, tool.path is not None) for tool in tools] == [
        ("read_file", "read", True),
        ("write_file", "write", True),
        ("edit_file", "write", True),
        ("glob", "read", False),
        ("shell", "execute", False),
    ]
    assert (READ_LIMIT, GLOB_LIMIT, SHELL_LIMIT) == (100_000, 1_000, 20_000)


def test_read_write_edit(use, folder):
    """The plain way: write, read, edit, read, each result in exact words."""
    assert use("write_file", path="sub/b.txt", content="grün\n") == ToolResult("wrote 6 bytes to sub/b.txt")
    assert use("read_file", path="sub/b.txt") == ToolResult("grün\n")
    assert use("edit_file", path="sub/b.txt", old="grün", new="blau") == ToolResult("edited sub/b.txt: 1 place")
    assert (folder / "sub" / "b.txt").read_bytes() == b"blau\n"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", {"path": "nowhere.txt"}, "there is no such file; glob lists what is there"),
        ("read_file", {"path": "no/where.txt"}, "there is no such folder; glob lists what is there"),
        ("edit_file", {"path": "nowhere.txt", "old": "a", "new": "b"}, "there is no such file"),
        ("edit_file", {"path": "a.txt", "old": "nothing", "new": "b"}, "found 0 times"),
        ("glob", {"pattern": "../*"}, "holds no '..'"),
        ("glob", {"pattern": "/etc/*"}, "relative to the workspace"),
        ("glob", {"pattern": ""}, "relative to the workspace"),
        ("glob", {"pattern": "a\0"}, "relative to the workspace"),
        ("shell", {"command": "a\0b"}, "NUL"),
    ],
)
def test_what_cannot_be_done_is_an_ordinary_result(name, arguments, words, use):
    """A refusal has the code `tool_execution_error` and says what is wrong."""
    result = use(name, **arguments)
    assert result.error == "tool_execution_error"
    assert result.content.startswith("Error [tool_execution_error]: ")
    assert words in result.content


@given(st.text("ab\r\n", max_size=12), st.text("ab\r\n", max_size=4), st.text("xy\r\n", max_size=4))
@example("a", "a", "\r\r\n")
@example("a", "a", "x\r\r\ny")
@example("a\rb", "b", "\nx")
@example("b\na", "b", "x\r")
@example("a\rb\na", "b", "")
def test_an_edit_changes_one_place_and_nothing_else(text, old, new):
    """For any text an edit is refused, or puts the new text at one place of the old; no line break comes or goes."""
    try:
        after = _edited(text, old, new)
    except WorkspaceError:
        return

    def plain(part):
        return part.replace("\r\n", "\n")

    whole = [at for at in range(len(text) + 1) if text[max(0, at - 1) : at + 1] != "\r\n"]
    assert [
        (start, end)
        for start in whole
        for end in whole
        if plain(text[start:end]) == plain(old)
        and after.startswith(text[:start])
        and after.endswith(text[end:])
        and plain(after) == plain(text[:start]) + plain(new) + plain(text[end:])
    ]


@pytest.mark.parametrize(("text", "old"), [(b"a\r\n", "a\r"), (b"a\r\n", "\r"), (b"\r\nb", "\r")])
def test_half_a_line_break_is_not_found(text, old, use, folder):
    """A lone carriage return in the old text is not the first half of a line break of the file."""
    (folder / "a.txt").write_bytes(text)
    assert "found 0 times" in use("edit_file", path="a.txt", old=old, new="x").content
    assert (folder / "a.txt").read_bytes() == text


PLACES = ["a.txt", "b.py", "sub/a.txt", "sub/deep/c.py", ".hidden", "文 件/d.txt", "[x].txt"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", [".hidden", "[x].txt", "a.txt", "b.py"]),
        ("*.txt", ["[x].txt", "a.txt"]),
        ("**/*.txt", ["[x].txt", "a.txt", "sub/a.txt", "文 件/d.txt"]),
        ("**", PLACES),
        ("**/*", PLACES),
        ("sub/**", ["sub/a.txt", "sub/deep/c.py"]),
        ("sub/*", ["sub/a.txt"]),
        ("*/*", ["sub/a.txt", "文 件/d.txt"]),
        ("./sub//a.txt", ["sub/a.txt"]),
        ("**/deep/**/*.py", ["sub/deep/c.py"]),
        ("[ab].*", ["a.txt", "b.py"]),
        ("[[]x].txt", ["[x].txt"]),
        ("?.txt", ["a.txt"]),
        ("A.TXT", [] if sys.platform != "win32" else ["a.txt"]),
        ("sub", []),
        (".", []),
        ("[", []),
    ],
)
def test_glob_lists_plain_files_sorted(pattern, found, use, folder):
    """Workspace-relative paths of plain files, '/' between the parts, sorted; or the words that there are none."""
    for place in PLACES:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).touch()
    assert use("glob", pattern=pattern).content == ("\n".join(sorted(found)) or "no file matches")


@given(st.lists(st.sampled_from(["*", "**", "a*", "sub", "?", "[ab]*", "."]), min_size=1, max_size=4))
def test_a_pattern_means_what_its_parts_mean(tmp_path_factory, parts):
    """For any pattern the files found are those whose parts match it, `**` standing for any number of folders."""
    folder = tmp_path_factory.getbasetemp() / "patterns"
    names = ["a", "ab", "sub/a", "sub/b", "sub/sub/a", "b/sub/ab"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    def matches(path, wanted):
        if not wanted:
            return not path
        if wanted[0] == "**":
            return bool(path) and (matches(path, wanted[1:] or ["*"]) or matches(path[1:], wanted))
        return bool(path) and fnmatchcase(path[0], wanted[0]) and matches(path[1:], wanted[1:])

    wanted = [part for part in parts if part != "."]
    registry = ToolRegistry(file_tools(Workspace(folder)))
    prepared = registry.prepare(ToolCall("c", "glob", json.dumps({"pattern": "/".join(parts)})))
    expected = [name for name in sorted(names) if wanted and matches(name.split("/"), wanted)]
    assert registry.invoke(prepared).content == ("\n".join(expected) or "no file matches")


@posix
@pytest.mark.parametrize("timeout", [0, 601, -1, 1.5, "5", True, None])
def test_a_time_limit_is_a_whole_number_of_seconds(timeout, use, folder):
    """The limit is from 1 to 600 seconds; anything else is refused before the command runs."""
    assert use("shell", command="touch b.txt", timeout=timeout).error == "invalid_arguments"
    assert not (folder / "b.txt").exists()


@posix
def test_shell_runs_in_the_workspace_and_joins_both_outputs(use, folder):
    """A command starts in the workspace folder; what it says on either output comes back in its order."""
    result = use("shell", command="echo one; echo two >&2; echo three; ls; exit 4")
    assert result == ToolResult("one\ntwo\nthree\na.txt\n\n[exit status 4]")
