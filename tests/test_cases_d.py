"""Workspace, files, shell: inputs that broke other people's products, each as its whole kind, by its number."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from helpers import Lab, tree_hash, wire

import labkit
from labkit import P05, ToolCall, ToolRegistry, Workspace, call, say
from labkit.filetools import READ_LIMIT, SHELL_LIMIT, file_tools, shell_tool
from labkit.profiles import P02

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, groups of processes and sh")


def tools(folder):
    """The five tools over a folder, as a function from a call to its result."""
    registry = ToolRegistry((*file_tools(Workspace(folder)), shell_tool(Workspace(folder))))

    def use(name, **arguments):
        prepared = registry.prepare(ToolCall("c", name, json.dumps(arguments)))
        return registry.invoke(prepared)

    return use


def refused(result):
    """A refusal in one sentence, which names no folder of this machine."""
    assert result.error == "tool_execution_error"
    assert result.content.startswith("Error [tool_execution_error]: ")
    assert "\n" not in result.content
    assert "pytest-of" not in result.content
    return result.content


# ---- D-d1 ----


@pytest.fixture(params=["ws", "my notes 文件夹"])
def places(request, tmp_path):
    """A workspace whose sibling's name begins with its own, with a secret, and links that lead there."""
    inside, outside = tmp_path / request.param, tmp_path / f"{request.param}-evil"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.txt").write_text("hello\n", encoding="utf-8")
    (outside / "s.txt").write_text("SECRET\n", encoding="utf-8")
    return inside, outside


def ways_out(inside, outside):
    """Paths that lead out of a workspace, or nowhere a tool may go."""
    sibling = outside.name
    yield from [f"../{sibling}/s.txt", f"x/../../{sibling}/s.txt", f"./../{sibling}/s.txt", "..", "a/..", "../"]
    yield from [f"{inside}/../{sibling}/s.txt", f"{outside}/s.txt", f"{inside}/a.txt", "/etc/hostname", "/", "//a.txt"]
    yield from ["~/x", "~", "~root/x", "a\0b", "\0", "", " ", "\t\n", ".", "./", "./."]


def test_d_d1_no_spelling_leads_out(places):
    """D-d1: `..`, absolute paths, `~`, NUL and blanks are refused by every tool, and the outside stays as it was."""
    inside, outside = places
    use, before = tools(inside), (tree_hash(inside), tree_hash(outside))
    for path in ways_out(inside, outside):
        for result in (
            use("read_file", path=path),
            use("write_file", path=path, content="EVIL"),
            use("edit_file", path=path, old="SECRET", new="EVIL"),
        ):
            assert "SECRET" not in refused(result), path
    assert (tree_hash(inside), tree_hash(outside)) == before
    assert sorted(path.name for path in inside.parent.iterdir()) == sorted([inside.name, outside.name])


@posix
@pytest.mark.parametrize("kind", ["folder", "file", "dangling", "chain", "relative", "loop"])
def test_d_d1_no_link_leads_out(kind, places):
    """D-d1: a link that leaves the workspace, in any part of the path and also dangling, is refused by every tool."""
    inside, outside = places
    link = inside / "link"
    targets = {"folder": outside, "file": outside / "s.txt", "dangling": outside / "new.txt", "loop": link}
    targets |= {"chain": inside / "second", "relative": Path("..") / outside.name}
    (inside / "second").symlink_to(outside)
    link.symlink_to(targets[kind])
    use, before = tools(inside), tree_hash(outside)
    for path in ("link", "link/s.txt", "link/new.txt", "link/sub/new.txt", "./link/s.txt", "link/./s.txt"):
        for result in (
            use("read_file", path=path),
            use("write_file", path=path, content="EVIL"),
            use("edit_file", path=path, old="SECRET", new="EVIL"),
        ):
            assert "SECRET" not in refused(result), path
    for pattern in ("**/*", "link/*", "*/*", "link/**/*", "**", "link"):
        assert "s.txt" not in use("glob", pattern=pattern).content, pattern
    assert tree_hash(outside) == before


@posix
def test_d_d1_links_inside_and_a_linked_root_work(places):
    """D-d1: a link that stays inside works, and so does a workspace that is itself reached through a link."""
    inside, _ = places
    (inside / "sub").mkdir()
    (inside / "sub" / "b.txt").write_text("deep", encoding="utf-8")
    (inside / "near").symlink_to("sub")
    (inside / "same.txt").symlink_to("a.txt")
    door = inside.parent / "door"
    door.symlink_to(inside)
    use = tools(door)
    assert use("read_file", path="near/b.txt").content == "deep"
    assert use("read_file", path="same.txt").content == "hello\n"
    assert use("write_file", path="near/c.txt", content="x").error is None
    assert use("edit_file", path="same.txt", old="hello", new="bye").error is None
    assert (inside / "sub" / "c.txt").read_bytes() == b"x"
    assert (inside / "a.txt").read_bytes() == b"bye\n"
    assert (inside / "same.txt").is_symlink()
    assert use("glob", pattern="**/*.txt").content.split("\n") == ["a.txt", "same.txt", "sub/b.txt", "sub/c.txt"]


@pytest.mark.parametrize(
    "path", ["foo..bar.txt", "..foo", "foo..", "...", "a~b", "-rf", "sub dir/文件 1.txt", "a:b", "CON.txt"]
)
def test_d_d1_odd_names_are_fine(path, places):
    """D-d1: a name that only looks like a way out is a name."""
    if sys.platform == "win32" and set(path) & set(":") | {path} & {"...", "foo..", "CON.txt"}:
        pytest.skip("no name on Windows")
    inside, _ = places
    use = tools(inside)
    assert use("write_file", path=path, content="x\n").error is None
    assert use("read_file", path=path).content == "x\n"
    assert path in use("glob", pattern="**/*").content.split("\n")


@posix
def test_d_d1_special_files_and_folders_are_refused(places):
    """D-d1: pipes, sockets, devices and folders are refused by every tool, at once and with a reason."""
    import socket

    inside, _ = places
    os.mkfifo(inside / "pipe")
    (inside / "sub").mkdir()
    (inside / "null").symlink_to("/dev/null")
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(inside)  # an address of a socket is short
        server.bind("socket")
        os.chdir(here)
        use = tools(inside)
        for name, reason in (("pipe", "special"), ("socket", "special"), ("sub", "folder"), ("null", "link")):
            assert reason in refused(use("read_file", path=name))
            assert reason in refused(use("edit_file", path=name, old="a", new="b"))
            assert reason in refused(use("write_file", path=name, content="x"))
        assert use("glob", pattern="*").content == "a.txt"
    assert "folder" in refused(use("read_file", path="a.txt/b.txt"))
    assert "folder" in refused(use("write_file", path="a.txt/b.txt", content="x"))


def test_d_d1_through_the_whole_loop(places):
    """D-d1: through an agent with a generous approver every way out is a paired refusal, denied by the boundary."""
    inside, outside = places
    paths = [path for path in ways_out(inside, outside) if path.strip()]
    before = tree_hash(outside)
    writes = [call("write_file", path=path, content="EVIL") for path in paths]
    reads = [call("read_file", path=path) for path in paths]
    lab = Lab(inside, [writes, reads, say("done")], profile=P05, approver=lambda ask: "allow")
    assert {one.result.error for one in lab.settled[: len(paths)]} <= {"permission_denied", "tool_execution_error"}
    outside_of_it = [record for record in lab.result.audit if record.source == "workspace"]
    assert len(outside_of_it) >= len(paths) - 3  # "." and its like are inside, but no file
    assert all(record.decision == "deny" and not record.asked for record in outside_of_it)
    assert "SECRET" not in json.dumps(wire(lab.model.requests[-1]))
    assert tree_hash(outside) == before


# ---- D-d2 ----


@pytest.mark.parametrize(
    ("old", "times"),
    [("x = 1", 2), ("x = 1\n", 2), ("=", 3), ("absent", 0), ("X = 1", 0), ("x = 1\ny = 2\nx = 1\n\n", 0), ("\n", 3)],
)
def test_d_d2_an_old_text_that_is_not_there_once_is_refused(old, times, tmp_path):
    """D-d2: the refusal states how many times it was found, and the bytes stay."""
    (tmp_path / "a.py").write_bytes(b"x = 1\ny = 2\nx = 1\n")
    text = refused(tools(tmp_path)("edit_file", path="a.py", old=old, new="x = 9"))
    assert f"found {times} times" in text
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\ny = 2\nx = 1\n"


def test_d_d2_places_that_overlap_are_counted_apart(tmp_path):
    """D-d2: "aa" is twice in "aaa": which one is meant nobody can tell."""
    (tmp_path / "a.txt").write_bytes(b"aaa")
    assert "found 2 times" in refused(tools(tmp_path)("edit_file", path="a.txt", old="aa", new="b"))


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("x = 1", "x = 1"), ("", ""), ("y\r\n", "y\n")])
def test_d_d2_an_empty_or_unchanged_text_is_refused(old, new, tmp_path):
    """D-d2: nothing to look for, or nothing to change, is a refusal."""
    (tmp_path / "a.py").write_bytes(b"x = 1\ny\n")
    refused(tools(tmp_path)("edit_file", path="a.py", old=old, new=new))
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\ny\n"


# ---- D-d3 ----


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "A\nB", b"A\r\nB\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "A\r\nB", b"A\r\nB\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "b1\nb2", b"a\r\nb1\r\nb2\r\nc\r\n"),
        (b"a\r\nb\nc\r\nd\n", "b", "B", b"a\r\nB\nc\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc", "A\nB\nC", b"A\r\nB\nC\r\nd\n"),
        (b"a\nb\nc\n", "a\r\nb", "A\r\nB", b"A\nB\nc\n"),
        (b"a\nb\n", "a\n", "", b"b\n"),
        (b"a\rb\r\n", "b", "c", b"a\rc\r\n"),
        (b"a\r\n\r\nb", "a\n\nb", "a\nb", b"a\r\nb"),
        ("文\r\n件\r\n".encode(), "文\n件", "新\n文件", "新\r\n文件\r\n".encode()),
    ],
)
def test_d_d3_line_endings_stay(before, old, new, after, tmp_path):
    """D-d3: a line break in the old text stands for either kind; the file keeps its own, line by line."""
    (tmp_path / "a.txt").write_bytes(before)
    use = tools(tmp_path)
    assert use("read_file", path="a.txt").content == before.decode()
    assert use("edit_file", path="a.txt", old=old, new=new).error is None
    assert (tmp_path / "a.txt").read_bytes() == after


@pytest.mark.parametrize("content", ["a\n", "a\r\n", "a\r", "", "\n", "a", "\ufeffa\n", "文件\n", "\x00\x1a\x7f"])
def test_d_d3_a_file_is_written_byte_for_byte(content, tmp_path):
    """D-d3: write_file writes exactly the UTF-8 of its content on every system, and read_file gives it back."""
    use = tools(tmp_path)
    size = len(content.encode())
    assert use("write_file", path="a.txt", content=content).content == f"wrote {size} bytes to a.txt"
    assert (tmp_path / "a.txt").read_bytes() == content.encode()
    assert use("read_file", path="a.txt").content == content


# ---- D-d4 ----

NOT_UTF8 = [
    b"\xd6\xd0\xce\xc4",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b"ok\n\xff",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    "é".encode("utf-16"),
]


@pytest.mark.parametrize("data", NOT_UTF8)
def test_d_d4_other_bytes_are_refused_and_stay(data, tmp_path):
    """D-d4: bytes that are not UTF-8 give a clear refusal to read and to edit; they stay as they are."""
    (tmp_path / "a.txt").write_bytes(data)
    use = tools(tmp_path)
    assert "not UTF-8" in refused(use("read_file", path="a.txt"))
    assert "not UTF-8" in refused(use("edit_file", path="a.txt", old="ok", new="no"))
    assert (tmp_path / "a.txt").read_bytes() == data


def test_d_d4_a_byte_order_mark_stays(tmp_path):
    """D-d4: a UTF-8 file that begins with a mark is read with it and edited around it."""
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    use = tools(tmp_path)
    assert use("read_file", path="a.txt").content == "\ufeffa = 1\r\n"
    assert use("edit_file", path="a.txt", old="a = 1", new="a = 2").error is None
    assert (tmp_path / "a.txt").read_bytes() == b"\xef\xbb\xbfa = 2\r\n"


@posix
def test_d_d4_shell_output_is_decoded_with_replacement(tmp_path):
    """D-d4: a command that prints other bytes gives text, what cannot be read replaced."""
    result = tools(tmp_path)("shell", command=r"printf '\377\376 ok'")
    assert result.content == "\ufffd\ufffd ok\n[exit status 0]"


def test_d_d4_nothing_depends_on_the_locale(tmp_path):
    """D-d4: in a C locale, with UTF-8 mode off and encoding warnings as errors, all file tools work as here."""
    source = """
    import json, sys
    from labkit import P05, ScriptedModelClient, build_agent, call, check_pairing, say
    text = "gr\\u00fcn \\u6587\\u4ef6 \\U0001f600\\n"
    name = "caf\\u00e9 \\u6587.txt"
    script = [
        call("write_file", path="a.txt", content=text),
        call("read_file", path="a.txt"),
        call("edit_file", path="a.txt", old="\\u6587", new="\\u4ef6"),
        call("read_file", path="a.txt"),
        call("shell", command="cat a.txt; ls"),
        call("glob", pattern="**/*"),
        call("todo_write", todos=[{"content": text, "status": "pending"}]),
        call("read_file", path=name),
        say("done \\u6587"),
    ]
    agent = build_agent(P05, ScriptedModelClient(script), workspace=sys.argv[1], approver=lambda ask: "allow")
    result = agent.run("\\u6587 go")
    print(json.dumps([one.result.content for done in result.rounds for one in done.settled]))
    """
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error", "-c", textwrap.dedent(source), str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))},
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "LC_ALL": "C",
            "PYTHONPATH": str(Path(labkit.__file__).parent.parent),
        },
    )
    assert (done.returncode, done.stderr) == (0, "")
    wrote, read, edited, again, *_, planned, absent = json.loads(done.stdout)
    text = "grün 文件 \U0001f600\n"
    assert (wrote, read) == (f"wrote {len(text.encode())} bytes to a.txt", text)
    assert (edited, again) == ("edited a.txt: 1 place", text.replace("文", "件"))
    assert json.loads(planned)["todos"][0]["content"] == text.strip()
    assert absent.startswith("Error [tool_execution_error]: ")
    assert (tmp_path / "a.txt").read_bytes() == text.replace("文", "件").encode()


def test_d_d4_every_file_that_labkit_opens_as_text_names_its_encoding():
    """D-d4: no open, read_text, write_text or text-mode process in the package leaves the encoding to the machine."""
    unnamed = []
    for path in sorted(Path(labkit.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            plain = [value.value for value in [*node.args, *given.values()] if isinstance(value, ast.Constant)]
            binary = any(isinstance(value, str) and re.fullmatch("[rwxa]?b[+]?|[rwxa][+]?b", value) for value in plain)
            is_os = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in ("os", "webbrowser")
            opens = name in ("read_text", "write_text") or (name in ("open", "fdopen") and not binary and not is_os)
            texts = name in ("run", "Popen", "check_output") and {"text", "universal_newlines"} & set(given)
            if (opens or texts) and "encoding" not in given and None not in given:
                unnamed.append(f"{path.name}:{node.lineno}: {name}")
    assert unnamed == []


# ---- D-d5 ----


def a_mark():
    """A number of seconds that no other process sleeps."""
    return str(300_000_000 + int(time.time() * 1000) % 100_000_000)


def living(mark):
    """Processes whose command line holds this mark and that are no corpse."""
    import psutil

    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if mark in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def gone(mark):
    """Whether all processes with this mark are gone; it waits for the kernel, not for luck."""
    end = time.monotonic() + 20
    while living(mark) and time.monotonic() < end:
        time.sleep(0.02)
    return living(mark) == []


@posix
@pytest.mark.parametrize(
    ("command", "late"),
    [
        ("sh -c 'echo so far; sleep {n} & sleep {n}'", True),
        ("echo so far; sleep {n} & sleep {n} & wait", True),
        ("trap '' TERM INT HUP; echo so far; sleep {n}; sleep {n}", True),
        ("echo so far; sleep {n} & exit 0", False),
        ("echo so far; (sleep {n} | sleep {n}) & exit 0", False),
        ("echo so far; nohup sleep {n} > /dev/null 2>&1 & exit 0", False),
    ],
)
def test_d_d5_a_command_ends_with_all_it_started(command, late, tmp_path):
    """D-d5: at its end, in time or not, no process of the group is left and no corpse of ours; the output is there."""
    import psutil

    mark = a_mark()
    result = tools(tmp_path)("shell", command=command.replace("{n}", mark), timeout=2 if late else 60)
    assert "so far\n" in result.content
    if late:
        assert result.error == "tool_execution_error"
        assert "timed out after 2 s" in result.content
    else:
        assert (result.error, result.content) == (None, "so far\n\n[exit status 0]")
    assert gone(f"sleep {mark}")
    ours = [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]
    assert ours == []


@posix
def test_d_d5_a_process_that_left_the_group_does_not_make_it_hang(tmp_path):
    """D-d5: a daemon that took a group of its own and holds the output open is left alone, and the tool returns."""
    import psutil

    mark = a_mark()
    result = tools(tmp_path)("shell", command=f"setsid sleep {mark} & sleep 0.2")
    assert result.content.endswith("[exit status 0]")
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", mark]:
            process.kill()
    assert gone(f"sleep {mark}")


@posix
def test_d_d5_a_command_gets_no_input(tmp_path):
    """D-d5: a command that asks for input gets its end at once."""
    assert tools(tmp_path)("shell", command="cat; read x; echo got [$x]").content == "got []\n\n[exit status 0]"


@posix
@pytest.mark.parametrize(
    ("command", "status"), [("exit 3", 3), ("true", 0), ("kill -9 $$", -9), ("no-such-thing-x", 127)]
)
def test_d_d5_the_exit_status_is_said(command, status, tmp_path):
    """D-d5: how a command ended is in its result, which is no error of the tool."""
    result = tools(tmp_path)("shell", command=command)
    assert result.error is None
    assert result.content.endswith(f"[exit status {status}]")


# ---- D-d6 ----

SECRETS = {
    "OPENAI_API_KEY": "sk-test-123",
    "GITHUB_TOKEN": "ghp-test-456",
    "AWS_SECRET_ACCESS_KEY": "aws-test-789",
    "DATABASE_URL": "postgres://u:pw-test-012@h/db",
    "MY_OWN_THING": "own-test-345",
    "openai_api_key": "lower-test-678",
}


@posix
@pytest.mark.parametrize(
    "command",
    [
        "env",
        "set",
        "export -p",
        f"{shlex.quote(sys.executable)} -c 'import os; print(os.environ)'",
        "cat /proc/self/environ",
    ],
)
def test_d_d6_a_command_sees_no_credentials(command, monkeypatch, folder):
    """D-d6: what is secret in our environment is in no result, no request and no trace; PATH and HOME are there."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/home/somebody")
    lab = Lab(folder, [call("shell", command=command), say("done")], approver=lambda ask: "allow")
    text = lab.settled[0].result.content
    told = text + repr(lab.result) + json.dumps([wire(request) for request in lab.model.requests])
    for name, value in SECRETS.items():
        assert value not in told, name
    if command != "cat /proc/self/environ" or sys.platform == "linux":
        assert "PATH" in text
        assert "/home/somebody" in text


@posix
def test_d_d6_ordinary_commands_work(folder):
    """D-d6: the environment that is left is enough for ordinary commands, in the workspace folder."""
    lab = Lab(folder, [call("shell", command="ls && wc -c < a.txt"), say("done")], approver=lambda ask: "allow")
    assert lab.settled[0].result.content.split() == ["a.txt", "6", "[exit", "status", "0]"]


# ---- D-d7 ----


@posix
def test_d_d7_a_flood_of_output_is_cut_and_counted(tmp_path):
    """D-d7: 50 MB of output: the cap, what was dropped, exit status 0, and memory of a small multiple of the cap."""
    source = """
    import json, resource, sys
    from labkit import ToolCall, ToolRegistry, Workspace
    from labkit.filetools import shell_tool
    registry = ToolRegistry((shell_tool(Workspace(sys.argv[1])),))
    def use(command):
        return registry.invoke(registry.prepare(ToolCall("c", "shell", json.dumps({"command": command})))).content
    use("echo warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = use("head -c 50000000 /dev/zero | tr '\\\\0' x")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([len(text), text[-80:], grown]))
    """
    env = {**os.environ, "PYTHONPATH": str(Path(labkit.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=env,
        check=True,
    )
    length, end, grown = json.loads(done.stdout)
    assert SHELL_LIMIT < length < SHELL_LIMIT + 200
    assert end.endswith(f"x\n[cut: {50_000_000 - SHELL_LIMIT} more bytes are not shown]\n[exit status 0]")
    assert grown * (1024 if sys.platform == "linux" else 1) < 100 * SHELL_LIMIT


def test_d_d7_a_big_file_is_cut_and_counted(tmp_path):
    """D-d7: read_file of 50 MB shows its beginning and says how much is not shown; no half character at the cut."""
    with open(tmp_path / "big.txt", "wb") as big:
        big.write("é".encode() * 10 + b"x")
        big.truncate(50_000_000)
    (tmp_path / "odd.txt").write_bytes(b"x" + "é".encode() * READ_LIMIT)
    use = tools(tmp_path)
    text = use("read_file", path="big.txt").content
    assert text.startswith("é" * 10 + "x")
    cut = f"\n[cut: the first {READ_LIMIT} of 50000000 bytes; {50_000_000 - READ_LIMIT} are not shown]"
    assert text.endswith(cut)
    assert len(text) < READ_LIMIT + 200
    odd = use("read_file", path="odd.txt")
    assert (odd.error, "\ufffd" in odd.content) == (None, False)


def test_d_d7_a_crowd_of_files_is_cut(tmp_path):
    """D-d7: glob lists a thousand paths, sorted, and says that there are more."""
    for number in range(1005):
        (tmp_path / f"{number:04}.txt").touch()
    lines = tools(tmp_path)("glob", pattern="*.txt").content.split("\n")
    assert lines[:1000] == [f"{number:04}.txt" for number in range(1000)]
    assert lines[1000:] == ["[cut: more than 1000 files match; use a narrower pattern]"]


def test_p02_has_no_shell(folder):
    """D-d: before permissions there is no shell, since nobody could be asked."""
    lab = Lab(folder, [call("shell", command="touch out.txt"), say("done")], profile=P02)
    assert lab.settled[0].result.error == "unknown_tool"
    assert not (folder / "out.txt").exists()
