"""Five tools over one workspace: read, write, edit, glob, shell. Text is UTF-8, everywhere and declared.

Read `file_tools` first. What a path may be, and how bytes get to the disk whole, is `labkit.workspace`'s; whether a
call may run is `labkit.permissions`'. Here is what each tool does, and what it says when it can't.
"""

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import Field

from labkit.errors import WorkspaceError
from labkit.messages import ToolResult, sendable
from labkit.tools import ToolDefinition, ToolInput
from labkit.workspace import Workspace

READ_LIMIT = 100_000
"""So many bytes of a file are shown; the rest is counted."""

GLOB_LIMIT = 1_000
"""So many paths are listed; of more, it is said that there are more."""

SHELL_LIMIT = 20_000
"""So many bytes of a command's output are shown; the rest is counted."""

SHELL_VARIABLES = """
    PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TERM TZ TMPDIR TMP TEMP PYTHONUTF8 PYTHONIOENCODING
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMFILES
"""
"""What a command sees of the environment. A list of what may pass, since nobody can list every name of a secret."""

Seconds = Annotated[int, Field(ge=1, le=600)]


class ReadFileInput(ToolInput):
    """A file."""

    path: str


class WriteFileInput(ToolInput):
    """A file and all that it will hold."""

    path: str
    content: str


class EditFileInput(ToolInput):
    """A file, a text that is in it once, and what to put there."""

    path: str
    old: str
    new: str


class GlobInput(ToolInput):
    """A pattern such as **/*.py."""

    pattern: str


class ShellInput(ToolInput):
    """A command, and its limit in seconds."""

    command: str
    timeout: Seconds = 30


def file_tools(workspace: Workspace) -> tuple[ToolDefinition, ...]:
    """`read_file`, `write_file`, `edit_file` and `glob` over this workspace."""

    def read_file(given: ReadFileInput) -> ToolResult:
        data, size = workspace.read(given.path, READ_LIMIT)
        text = _text(data, cut=size > len(data))
        if size > len(data):
            text += f"\n[cut: the first {len(data)} of {size} bytes; {size - len(data)} are not shown]"
        return ToolResult(text)

    def write_file(given: WriteFileInput) -> ToolResult:
        data = given.content.encode()
        workspace.write(given.path, data)
        return ToolResult(f"wrote {len(data)} bytes to {given.path}")

    def edit_file(given: EditFileInput) -> ToolResult:
        data, _ = workspace.read(given.path)
        workspace.write(given.path, _edited(_text(data), given.old, given.new).encode())
        return ToolResult(f"edited {given.path}: 1 place")

    def glob(given: GlobInput) -> ToolResult:
        found = _matches(workspace, given.pattern)
        more = f"\n[cut: more than {GLOB_LIMIT} files match; use a narrower pattern]" if len(found) > GLOB_LIMIT else ""
        return ToolResult("\n".join(found[:GLOB_LIMIT]) + more if found else "no file matches")

    return (
        ToolDefinition(
            "read_file",
            "Read a UTF-8 text file in the workspace. The path is relative to it.",
            ReadFileInput,
            "read",
            _said(read_file),
            path=lambda given: given.path,
        ),
        ToolDefinition(
            "write_file",
            "Write a UTF-8 text file in the workspace, whole, in the place of what was there.",
            WriteFileInput,
            "write",
            _said(write_file),
            path=lambda given: given.path,
        ),
        ToolDefinition(
            "edit_file",
            "Replace a text that occurs exactly once in a file by another.",
            EditFileInput,
            "write",
            _said(edit_file),
            path=lambda given: given.path,
        ),
        ToolDefinition(
            "glob",
            "List the files in the workspace that match a pattern such as **/*.py, sorted.",
            GlobInput,
            "read",
            _said(glob),
        ),
    )


def shell_tool(workspace: Workspace) -> ToolDefinition:
    """`shell`: one command in the workspace folder. It is no sandbox: what it runs may touch anything the user may."""

    def shell(given: ShellInput) -> ToolResult:
        return _run(given.command, workspace.root, given.timeout)

    return ToolDefinition(
        "shell",
        "Run one command in the workspace folder. No input; a time limit in seconds; long output is cut.",
        ShellInput,
        "execute",
        _said(shell),
    )


def _said(handler: Callable[[Any], ToolResult]) -> Callable[[Any], ToolResult]:
    """The handler, with what the disk or the workspace refused said as an ordinary result."""

    def said(given: Any) -> ToolResult:
        try:
            return handler(given)
        except WorkspaceError as error:
            return ToolResult.refusal("tool_execution_error", str(error))
        except OSError as error:
            return ToolResult.refusal(
                "tool_execution_error", f"the system refused: {error.strerror or 'no reason given'}"
            )

    return said


# ---- text ----


def _text(data: bytes, *, cut: bool = False) -> str:
    """The bytes as UTF-8, or a refusal. Where the end was cut off, half a character there is left out."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if cut and error.reason == "unexpected end of data":
            return data[: error.start].decode()
        raise WorkspaceError(f"the file is not UTF-8 text (byte {error.start}); it was left as it is") from None


def _edited(text: str, old: str, new: str) -> str:
    """The text with its only `old` replaced by `new`. A line break in either stands for any of the file's own."""
    old, new = (part.replace("\r\n", "\n") for part in (old, new))
    if not old:
        raise WorkspaceError("the old text is empty; give the text to replace, or use write_file")
    if old == new:
        raise WorkspaceError("the old and the new text are the same; nothing was changed")
    # subtle: a \r of the old text is a character by itself, and never the first half of a line break
    pattern = re.escape(old).replace("\\\r", "\r(?!\n)").replace("\\\n", "(?:\r\n|(?<!\r)\n)")
    places = [place.start() for place in re.finditer(f"(?={pattern})", text)]
    if len(places) != 1:
        raise WorkspaceError(
            f"the old text was found {len(places)} times and must be there exactly once; "
            + ("look at the file again" if not places else "take more of the lines around it")
        )
    found = re.compile(pattern).match(text, places[0])
    assert found is not None
    endings = re.findall("\r?\n", found[0])
    usual = endings[-1] if endings else "\r\n" if "\r\n" in text else "\n"
    lines = new.split("\n")
    breaks = [*endings, *[usual] * len(lines)]
    # a \r that stands alone stays alone, whatever comes to stand behind it
    put = text[: found.start()] + lines[0]
    for line, end in zip(lines[1:], breaks, strict=False):
        put += ("\r\n" if put.endswith("\r") else end) + line
    rest = text[found.end() :]
    return put + ("\r" if put.endswith("\r") and rest.startswith("\n") else "") + rest


def _matches(workspace: Workspace, pattern: str) -> list[str]:
    """The plain files inside that match, sorted; one more than the limit at the most."""
    parts = pattern.replace("\\", "/").split("/")
    if "\0" in pattern or not pattern.strip() or Path(pattern).is_absolute() or ".." in parts or pattern[0] in "/~":
        raise WorkspaceError("a pattern is relative to the workspace and holds no '..', such as **/*.py")
    parts = [part for part in parts if part not in ("", ".")]
    if parts[-1:] == ["**"]:
        parts.append("*")
    return sorted({sendable(path) for path in _found(workspace, parts)})[: GLOB_LIMIT + 1]


def _found(workspace: Workspace, parts: list[str]) -> Iterator[str]:
    """The paths that match the parts of a pattern. Not pathlib's glob, which lists what is behind a link outside.

    Of links, only those are followed that lead to a place inside, and by `**` none.
    """
    todo = [("", 0)] if parts else []
    done = set(todo)
    while todo:
        folder, at = todo.pop()
        more: list[tuple[str, int]] = []
        if parts[at] == "**":
            more.append((folder, at + 1))
        for name, is_folder, is_file in _entries(workspace, folder):
            path = folder + name
            if parts[at] == "**":
                if is_folder:
                    more.append((path + "/", at))
            elif fnmatch(name, parts[at]):
                if not is_folder and not is_file:
                    is_folder, is_file = _behind(workspace, path)
                if is_folder and at + 1 < len(parts):
                    more.append((path + "/", at + 1))
                if is_file and at + 1 == len(parts):
                    yield path
        todo += [one for one in more if one not in done]
        done.update(more)


def _entries(workspace: Workspace, folder: str) -> list[tuple[str, bool, bool]]:
    """What is in a folder; nothing where it cannot be read or has gone meanwhile."""
    if not folder:
        return workspace.entries(workspace.root)
    try:
        return workspace.entries(workspace.locate("./" + folder))
    except (OSError, WorkspaceError):
        return []


def _behind(workspace: Workspace, path: str) -> tuple[bool, bool]:
    """Whether a link leads to a folder, or to a plain file, inside."""
    try:
        place = workspace.locate("./" + path)
        return place.is_dir(), place.is_file()
    except (OSError, WorkspaceError):
        return False, False


# ---- the shell ----


def _run(command: str, folder: Path, seconds: int) -> ToolResult:
    """Run a command and everything it starts as one group, which ends with it, at the latest after `seconds`."""
    if sys.platform == "emscripten":
        return ToolResult.refusal("tool_execution_error", "this Python runs in a browser and has no shell")
    if "\0" in command:
        return ToolResult.refusal("tool_execution_error", "a command holds no NUL character")
    kept = bytearray()
    dropped = [0]
    late = False
    import subprocess  # here, since most runs start no process, and its import is felt

    process = subprocess.Popen(
        command,
        shell=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name.upper() in SHELL_VARIABLES.split()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        # subtle: a reader of its own, because a full pipe would block the command, and a process that left the group
        # may hold the pipe open for ever
        reader = threading.Thread(target=_drain, args=(process.stdout, kept, dropped), daemon=True)
        reader.start()
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        _end_group(process)
        process.wait()
    reader.join(3)
    output = bytes(kept).decode("utf-8", "replace")
    if dropped[0]:
        output += f"\n[cut: {dropped[0]} more bytes are not shown]"
    if late:
        said = f"the command timed out after {seconds} s and was ended, with all it had started"
        return ToolResult.refusal("tool_execution_error", f"{said}. Output so far:\n{output}")
    return ToolResult(f"{output}\n[exit status {process.returncode}]".lstrip("\n"))


def _drain(stream: IO[bytes], kept: bytearray, dropped: list[int]) -> None:
    """Read to the end; keep the first SHELL_LIMIT bytes, count the others."""
    with stream:
        while chunk := os.read(stream.fileno(), 65_536):
            room = max(0, SHELL_LIMIT - len(kept))
            kept += chunk[:room]
            dropped[0] += len(chunk) - len(chunk[:room])


def _end_group(process: Any) -> None:
    """End the command and whatever of its group is left."""
    if os.name == "nt":
        if process.poll() is None:
            import subprocess

            subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False)
        return
    import signal

    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
