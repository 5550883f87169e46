"""The command line, in real processes: what it prints, what it asks, and its exit codes."""

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from server import KEY, MODEL, ModelServer, Slow

from labkit import call, say
from labkit.cli import ScriptFileError, main, read_script
from labkit.clients.openai import SETTINGS

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "notebooks" / "scripts"
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal and signals as POSIX has them")


def environment(**more):
    """This process's, without the settings of a live model."""
    return {name: value for name, value in os.environ.items() if name not in SETTINGS} | more


def labkit(*words, cwd, **more):
    """`python -m labkit words`, to its end, with no terminal."""
    return subprocess.run(
        [sys.executable, "-m", "labkit", *map(str, words)],
        cwd=cwd,
        env=environment(**{"PYTHONIOENCODING": "utf-8"} | more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.fixture
def script(tmp_path):
    """Write a script file, give its path."""

    def write(*entries):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(entries), encoding="utf-8")
        return path

    return write


def test_a_script_runs_offline_in_frames(folder):
    """Each round is a frame and a line of progress; the list in words, the end and the text follow; exit code 0."""
    done = labkit(
        *("run", "--chapter", 5, "--prompt", "Plan."), "--script", SCRIPTS / "plan_then_read.json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("Round ")] == [
        "Round 1: todo_write",
        "Round 2: glob, read_file",
        "Round 3: todo_write",
        "Round 4: an answer in text",
    ]
    assert "--- round 1 of at most 20; the list: 0 of 2 completed\n" in done.stdout
    assert done.stdout.endswith(
        "the list:\n  [completed] look around\n  [completed] read a.txt\n"
        "ended: completed, after 4 rounds\nI looked around and read a.txt, if it is there.\n"
    )


def test_the_other_example_is_reminded_and_refused(folder, capsys):
    """The second example shows the reminder in request 4 and a refusal that the model repairs."""
    words = ["run", "--chapter", "5", "--prompt", "go", "--workspace", str(folder)]
    assert main([*words, "--script", str(SCRIPTS / "forgets_the_list.json")]) == 0
    frames = capsys.readouterr().out.split("Round ")
    assert [at for at, frame in enumerate(frames) if "in this request only" in frame] == [4]
    assert "refused [invalid_arguments]" in frames[4]
    assert "[in_progress] report  (added)" in frames[5]


def test_the_readmes_line_runs_as_it_stands(tmp_path):
    """The command that the README shows runs from the repository's folder, and completes."""
    (line,) = re.findall(r"^labkit (run .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    shutil.copytree(SCRIPTS, tmp_path / "notebooks" / "scripts")
    done = labkit(*shlex.split(line), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "new: user: Plan, then read a.txt." in done.stdout


def test_ended_otherwise_is_1(folder, script):
    """Any end but `completed`, and a script that runs out, is exit code 1."""
    glob = {"call": "glob", "arguments": {"pattern": "*"}}
    words = ("run", "--chapter", 5, "--prompt", "go", "--script")
    cut = labkit(*words, script(glob, glob), "--max-rounds", 1, cwd=folder)
    assert cut.returncode == 1, cut.stderr
    assert "ended: max_rounds, after 1 round\n" in cut.stdout
    out = labkit(*words, script(glob), cwd=folder)
    assert out.returncode == 1
    assert out.stderr.startswith("labkit: the script has 1 replies")
    assert "Traceback" not in out.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--chapter", "6", "--prompt", "x"], "invalid choice"),
        (["run", "--chapter", "5"], "--prompt"),
        (["run", "--chapter", "5", "--prompt", "x", "--max-rounds", "0"], "no whole number of at least 1"),
        (["run", "--chapter", "5", "--prompt", "x", "--max-rounds", "many"], "no whole number of at least 1"),
        (["run", "--chapter", "5", "--prompt", "x", "--max-rounds", "9" * 5000], "... [4920 more characters]"),
        (["run", "--chapter", "5", "--prompt", "x", "--odd"], "--odd"),
        ([], "run"),
    ],
)
def test_usage_errors_are_2(words, said, capsys):
    """A wrong use leaves with 2 and names what was wrong."""
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_missing_settings_are_all_named_with_a_way_on(folder):
    """Without a script and settings the exit code is 2, and one message names every missing setting and what to do."""
    words = ("run", "--chapter", 5, "--prompt", "go")
    none = labkit(*words, cwd=folder)
    assert none.returncode == 2
    assert all(name in none.stderr for name in SETTINGS)
    assert "--script FILE" in none.stderr
    one = labkit(*words, cwd=folder, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_MODEL=" ")
    assert one.returncode == 2
    assert "OPENAI_MODEL" in one.stderr
    assert "OPENAI_API_KEY" not in one.stderr


def test_a_missing_workspace_is_2(folder, capsys):
    """A workspace that is no folder is said in one line."""
    words = ["run", "--chapter", "5", "--prompt", "go", "--script", str(SCRIPTS / "plan_then_read.json")]
    assert main([*words, "--workspace", str(folder / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "entry",
    [
        7,
        None,
        {},
        {"say": 7},
        {"say": "x", "more": 1},
        {"call": "glob", "arguments": 7},
        {"call": "glob", "args": {}},
        {"call": "glob", "id": 7},
        {"calls": []},
        {"calls": [{"say": "x"}]},
        {"calls": {"call": "glob"}},
        {"reply": {"text": 7}},
        {"reply": {"texts": "x"}},
        {"reply": {"calls": [7]}},
        {"reply": "x"},
    ],
    ids=json.dumps,
)
def test_a_wrong_entry_is_named_with_the_form(script, entry):
    """An entry that is none is named by its place, with the forms that an entry has."""
    with pytest.raises(ScriptFileError, match=r"entry 2: this is no entry.*\n(.*\n)+.*\"say\""):
        read_script(script({"say": "x"}, entry))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"say": "x"}', "not a list"),
        (b"[", "not JSON"),
        (b"\xff", "not JSON in UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"[" + b"1" * 5000 + b"]", "not JSON"),
        (None, "cannot be opened"),
    ],
)
def test_a_file_that_is_no_script_is_2(tmp_path, capsys, text, said):
    """A file that cannot be read, or holds no list, is exit code 2 and one message."""
    path = tmp_path / "script.json"
    if text is not None:
        path.write_bytes(text)
    assert main(["run", "--chapter", "1", "--prompt", "x", "--script", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_every_form_of_an_entry(script):
    """say, call (with raw arguments and an id too), calls and reply become the script's entries."""
    entries = read_script(
        script(
            {"say": "x"},
            {"call": "a", "arguments": "{", "id": "c7"},
            {"call": "b"},
            {"calls": [{"call": "a"}, {"call": "b", "arguments": {"n": "日本"}}]},
            {"reply": {"text": "t", "calls": [{"call": "a"}], "finish_reason": "length"}},
            {"reply": {"refusal": "no"}},
        )
    )
    assert entries[0].content == "x"
    assert (entries[1].id, entries[1].name, entries[1].arguments) == ("c7", "a", "{")
    assert entries[2].arguments == "{}"
    assert [one.arguments for one in entries[3]] == ["{}", '{"n": "日本"}']
    assert (entries[4].content, entries[4].tool_calls[0].name, entries[4].finish_reason) == ("t", "a", "length")
    assert entries[5].refusal == "no"


def test_a_script_may_begin_with_a_byte_order_mark(tmp_path):
    """A file that a Windows editor saved is read like any other."""
    path = tmp_path / "script.json"
    path.write_bytes(b'\xef\xbb\xbf[{"say": "x"}]')
    assert len(read_script(path)) == 1


@pytest.mark.parametrize(
    ("console", "shown"),
    [
        ({"PYTHONIOENCODING": "cp1252:strict"}, "[completed] Prüfen \\u2705 \\u65e5".encode("cp1252")),
        pytest.param(
            {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""},
            rb"[completed] Pr\xfcfen \u2705 \u65e5",
            marks=POSIX,
        ),
        pytest.param({"LC_ALL": "C", "PYTHONUTF8": "", "PYTHONIOENCODING": ""}, "✅".encode(), marks=POSIX),
    ],
    ids=["cp1252", "ascii", "LC_ALL=C"],
)
def test_d_a4_a_console_that_lacks_characters_ends_no_run(folder, script, console, shown):
    """On a strict cp1252 or an ASCII console, characters it lacks are shown as escapes, and the run completes."""
    todo = {"call": "todo_write", "arguments": {"todos": [{"content": "Prüfen ✅ 日本語", "status": "completed"}]}}
    command = ["run", "--chapter", "5", "--prompt", "検査", "--script", str(script(todo, {"say": "✅"}))]
    done = subprocess.run(
        [sys.executable, "-m", "labkit", *command],
        cwd=folder,
        # subtle: an ASCII Python cannot follow an editable install into a folder with Chinese characters; bytes it can
        env=environment(**{"PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)} | console),
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


def writes(script):
    return script({"call": "write_file", "arguments": {"path": "new.txt", "content": "x"}}, {"say": "done"})


def test_without_a_terminal_the_answer_is_deny(folder, script):
    """With nobody to ask the call is denied, and the output says so."""
    done = labkit("run", "--chapter", 5, "--prompt", "go", "--script", writes(script), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no terminal to ask on, so the answer is deny" in done.stdout
    assert "denied after asking" in done.stdout
    assert not (folder / "new.txt").exists()


# A terminal sends Ctrl-C to those it controls; a new session has none. This takes it, then is `python -m labkit`.
ON_ITS_TERMINAL = """\
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("labkit", run_name="__main__", alter_sys=True)
"""


def on_a_terminal(words, cwd, act):
    """Run with a pseudo-terminal; `act(send, wait_for)`. Gives the output and the exit code."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_ITS_TERMINAL, *map(str, words)],
        cwd=cwd,
        env=environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""

    def more():
        nonlocal seen
        assert select.select([ours], [], [], 60)[0], f"nothing more was said in a minute: {seen.decode()}"
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            piece = b""
        seen += piece
        return piece

    def wait_for(words):
        while words not in seen:
            assert more(), seen.decode()

    try:
        act(lambda text: os.write(ours, text), wait_for)
        while more():
            pass
        return seen.decode(), process.wait(60)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@POSIX
@pytest.mark.parametrize(
    ("typed", "written"), [(b"y\n", True), (b" Yes \n", True), (b"\n", False), (b"n\n", False), (b"\x04", False)]
)
def test_a_person_is_asked_on_the_terminal(folder, script, typed, written):
    """On a terminal the question shows the call and the reason; only y or yes is a yes."""

    def act(send, wait_for):
        wait_for(b"Allow? [y/N]")
        send(typed)

    seen, code = on_a_terminal(["run", "--chapter", 5, "--prompt", "go", "--script", writes(script)], folder, act)
    assert code == 0, seen
    assert 'write_file wants to run: {"path": "new.txt", "content": "x"}' in seen
    assert "ask before files change" in seen
    assert (folder / "new.txt").exists() is written


@POSIX
def test_the_question_shows_the_whole_call_and_hides_nothing(folder, script):
    """However long the arguments are, and whatever they hold, a person sees them to their end."""
    long = "x" * 3000 + "\u202e\x9b2J; last words"
    asked = {"call": "write_file", "arguments": {"path": "new.txt", "content": long}}

    def act(send, wait_for):
        wait_for(b"Allow? [y/N]")
        send(b"n\n")

    words = ["run", "--chapter", 5, "--prompt", "go", "--script", script(asked, {"say": "done"})]
    seen, code = on_a_terminal(words, folder, act)
    assert code == 0
    assert r"xxx\u202e\x9b2J; last words" in seen.replace("\r\n", "\n")
    assert "\x9b" not in seen


@POSIX
def test_ctrl_c_is_130(folder, script):
    """Ctrl-C while a person is asked leaves with 130, in one line, and nothing was written."""

    def act(send, wait_for):
        wait_for(b"Allow? [y/N]")
        send(b"\x03")

    seen, code = on_a_terminal(["run", "--chapter", 5, "--prompt", "go", "--script", writes(script)], folder, act)
    assert code == 130, seen
    assert "labkit: interrupted" in seen
    assert "Traceback" not in seen
    assert not (folder / "new.txt").exists()


@POSIX
def test_ctrl_c_during_a_request_is_130(folder):
    """An interrupt while the server is still answering leaves with 130, in one line, without waiting for the rest."""
    with ModelServer([Slow(say("x"), drips=10_000)]) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "labkit", "run", "--chapter", "1", "--prompt", "go"],
            cwd=folder,
            env=environment(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url, OPENAI_MODEL=MODEL),
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        while not server.bodies:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "\nlabkit: interrupted\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_1(folder):
    """A full disk under the output is one line and exit code 1."""
    words = ["run", "--chapter", "5", "--prompt", "go", "--script", SCRIPTS / "plan_then_read.json"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "labkit", *words],
            cwd=folder,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
    assert done.returncode == 1
    assert done.stderr.startswith("labkit: [Errno 28] ")
    assert done.stderr.count("\n") == 1


@POSIX
def test_a_reader_that_wants_no_more_is_no_crash(folder):
    """Output into a pipe that nobody reads any more, as behind `head`, ends without a traceback, with 1."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = ["run", "--chapter", "5", "--prompt", "go", "--script", SCRIPTS / "plan_then_read.json"]
    done = subprocess.run(
        [sys.executable, "-m", "labkit", *words],
        cwd=folder,
        env=environment(),
        stdout=write_end,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_installed_command_is_the_router(folder):
    """`labkit --help` and `labkit run --help` say what there is, with the form of a script."""
    top, run = labkit("--help", cwd=folder), labkit("run", "--help", cwd=folder)
    assert "serve" in top.stdout
    assert all(option in run.stdout for option in ("--workspace", "--script", "--max-rounds", '{"say": "text"}'))


def test_a_served_models_text_is_shown_while_it_comes(folder):
    """With the three settings a run goes to the server; the text stands alone on its line before its frame."""
    with ModelServer([call("glob", pattern="*"), say("all done")]) as server:
        settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "OPENAI_MODEL": MODEL}
        done = labkit("run", "--chapter", 5, "--prompt", "go", cwd=folder, **settings)
    assert done.returncode == 0, done.stderr
    assert [body["stream"] for body in server.bodies] == [True, True]
    assert "\nall done\n\nRound 2: an answer in text\n" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_server_that_is_not_there_is_1(folder):
    """A request that fails is one line with the address and what to do, and exit code 1."""
    settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": MODEL}
    done = labkit("run", "--chapter", 1, "--prompt", "go", cwd=folder, **settings)
    assert done.returncode == 1
    assert done.stderr.startswith("labkit: http://127.0.0.1:9/v1/chat/completions: no connection")
    assert "Traceback" not in done.stderr
