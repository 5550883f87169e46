"""lab.py: which Pythons it takes, when it sets up and when it does not, and what it says when something is wrong.

Most tests copy lab.py into a folder of their own, so that no test touches the environment it runs in. The set-up itself
downloads for a minute, so no test does it: `python lab.py test` has just done it when these run.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import lab

SOURCE = Path(lab.__file__)
posix_only = pytest.mark.skipif(os.name == "nt", reason="stands in for the environment's Python with a shell script")


class Counted(lab.Environment):
    """An environment whose slow parts only count, and fail if told to."""

    fails = False
    until: threading.Event | None = None

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.calls: list[str] = []

    def make(self) -> None:
        self.calls.append("make")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.bin)
        Path(self.python).touch()

    def install(self) -> None:
        self.calls.append("install")
        assert self.until is None or self.until.wait(60)
        if self.fails:
            raise lab.Failure("no network")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a difficult name that holds what the set-up reads, and lab.py."""
    root = tmp_path / "测试 folder"
    (root / "notebooks").mkdir(parents=True)
    (root / "constraints").mkdir()
    (root / "pyproject.toml").write_bytes(b"[project]\nname = 'x'\n")
    (root / lab.Environment(str(root)).constraints).write_bytes(b"x==1\n")
    shutil.copy(SOURCE, root)
    return root


@pytest.fixture
def whole(checkout: Path) -> Counted:
    """That checkout after a set-up that came to its end."""
    environment = Counted(checkout)
    environment.ready()
    environment.calls.clear()
    return environment


def start(root: Path, *words: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Type `python lab.py words` in another folder."""
    return subprocess.run(
        [python, str(root / "lab.py"), *words],
        cwd=root.parent,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )


@functools.cache
def pythons() -> dict[tuple[int, int], str]:
    """The Pythons on this machine, by version: on the PATH by their names, and pyenv's behind its shims."""
    names = ["python3", "python2.7", *(f"python3.{minor}" for minor in range(6, 20))]
    on_path = [path for path in map(shutil.which, names) if path and "shims" not in Path(path).parts]
    of_pyenv = (Path.home() / ".pyenv" / "versions").glob("*/bin/python")
    candidates = [sys.executable, *on_path, *map(str, of_pyenv)]
    found: dict[tuple[int, int], str] = {}
    for path in candidates:
        ask = [path, "-c", "import sys; print('%d %d' % sys.version_info[:2])"]
        answer = subprocess.run(ask, capture_output=True, encoding="utf-8", check=False)
        if answer.returncode == 0:
            major, minor = map(int, answer.stdout.split())
            found.setdefault((major, minor), path)
    return found


# --- which Pythons ---


def test_help_on_every_python_it_takes(checkout: Path) -> None:
    """--help names each command and sets nothing up."""
    for version, python in pythons().items():
        if lab.OLDEST <= version < lab.TOO_NEW:
            shown = start(checkout, "--help", python=python)
            assert shown.returncode == 0, shown.stderr
            assert all(f"lab.py {command}" in shown.stdout for command in lab.COMMANDS[1:])
    assert not (checkout / ".venv").exists()


def test_an_old_python_gets_a_sentence(checkout: Path) -> None:
    """A Python that is too old is told its version and what to do, in one line and never as a SyntaxError."""
    old = {version: python for version, python in pythons().items() if version < lab.OLDEST}
    if not old:
        pytest.skip("no old Python on this machine; the syntax test below stands for it")
    for version, python in old.items():
        said = start(checkout, "test", python=python)
        assert said.returncode == 1
        assert said.stderr.count("\n") == 1
        assert "this is Python {}.{}.".format(*version) in said.stderr
        assert "python3.12 lab.py" in said.stderr


def test_lab_is_written_in_old_syntax() -> None:
    """lab.py holds nothing that Python 2.7 cannot parse, and imports nothing new before it looks at the version."""
    source = SOURCE.read_text(encoding="utf-8")
    tree = ast.parse(source)
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.AsyncFunctionDef, ast.Await, ast.MatMult)
    for node in ast.walk(tree):
        where = f"line {getattr(node, 'lineno', '?')}"
        assert not isinstance(node, (*new, ast.YieldFrom, ast.Match, ast.TryStar, ast.Starred)), where
        assert not (isinstance(node, ast.Dict) and None in node.keys), where
        assert not (isinstance(node, ast.Call) and None in [k.arg for k in node.keywords]), where
        assert not (isinstance(node, ast.Raise) and node.cause), where
        assert not (isinstance(node, ast.FunctionDef) and (node.returns or node.args.kwonlyargs)), where
        assert not (isinstance(node, ast.arg) and node.annotation), where
    assert source.isascii()
    check = next(i for i, node in enumerate(tree.body) if isinstance(node, ast.If))
    early = [node for node in tree.body[:check] if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in early] == [
        "from __future__ import print_function",
        "import os",
        "import sys",
    ]


# --- when it sets up ---


def test_the_first_start_sets_up_and_the_second_does_not(checkout: Path) -> None:
    """An environment that came to its end is used as it is."""
    environment = Counted(checkout)
    environment.ready()
    environment.ready()
    assert environment.calls == ["make", "install"]
    assert environment.plan() == ("keep", "")


@pytest.mark.parametrize("rest", ["an empty folder", "a broken stamp", "no stamp"])
def test_a_half_made_environment_is_made_again(whole: Counted, rest: str) -> None:
    """Whatever a set-up left that did not come to its end, the next start begins anew."""
    if rest == "an empty folder":
        shutil.rmtree(whole.folder)
        os.mkdir(whole.folder)
    elif rest == "a broken stamp":
        Path(whole.stamp).write_text('{"place": ', encoding="utf-8")
    else:
        os.remove(whole.stamp)
    assert whole.plan() == ("make", "the last set-up did not come to its end")
    whole.ready()
    assert whole.calls == ["make", "install"]
    assert whole.plan()[0] == "keep"


@pytest.mark.parametrize("again", [False, True])
def test_a_failing_set_up_leaves_no_stamp(whole: Counted, again: bool) -> None:
    """If packages cannot be installed, first or later, the environment counts as half-made."""
    whole.fails = True
    (Path(whole.root) / "pyproject.toml").write_text("# changed", encoding="utf-8")
    with pytest.raises(lab.Failure):
        whole.ready(again=again)
    assert whole.plan()[0] == "make"


def test_a_moved_folder_is_set_up_at_its_new_place(whole: Counted, tmp_path: Path) -> None:
    """Paths are written into an environment, so one that was moved or copied along is made anew."""
    moved = Counted(shutil.copytree(whole.root, tmp_path / "elsewhere", symlinks=True))
    assert moved.plan() == ("make", "the folder was moved or copied")
    assert whole.plan()[0] == "keep"


def test_another_python_makes_it_anew(whole: Counted) -> None:
    """The environment belongs to one Python version; a start with another says which two they are."""
    stamp = json.loads(Path(whole.stamp).read_text(encoding="utf-8"))
    stamp["python"] = "CPython 3.11.0 riscv"
    Path(whole.stamp).write_text(json.dumps(stamp), encoding="utf-8")
    todo, why = whole.plan()
    assert todo == "make"
    assert "CPython 3.11.0 riscv" in why


def test_a_python_that_is_gone_makes_it_anew(whole: Counted) -> None:
    """An uninstalled Python leaves a dangling link, which is found."""
    os.remove(whole.python)
    assert whole.plan() == ("make", "the Python it was made with is gone")


@pytest.mark.parametrize(
    ("said", "tries"),
    [
        ("ERROR: No matching distribution found for soupsieve==99", [True, False]),
        ("after connection broken by 'NewConnectionError'\nERROR: No matching distribution found for x", [True]),
        ("No space left on device", [True]),
    ],
)
def test_constraints_that_do_not_suit_are_left_out(checkout: Path, said: str, tries: list[bool]) -> None:
    """Versions recorded on one machine must not lock out another; other failures are not tried twice."""

    class Failing(Counted):
        def pip(self, title: str, words: list[str]) -> None:
            if "pip" not in words:
                self.calls.append("-c" in words)
                raise subprocess.CalledProcessError(1, words, output=said)

    environment = Failing(checkout)
    with pytest.raises(lab.Failure):
        lab.Environment.install(environment)
    assert environment.calls == tries


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints"])
def test_a_changed_list_of_packages_updates(whole: Counted, name: str) -> None:
    """After a change of pyproject.toml or of the constraints the packages are brought up to date, once."""
    file = name if name == "pyproject.toml" else whole.constraints
    (Path(whole.root) / file).write_text("# changed", encoding="utf-8")
    assert whole.plan() == ("update", f"{file} has changed")
    whole.ready()
    whole.ready()
    assert whole.calls == ["install"]


def test_line_ends_are_no_change(whole: Counted) -> None:
    """The same file with Windows line ends sets nothing up."""
    file = Path(whole.root) / "pyproject.toml"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert whole.plan()[0] == "keep"


def test_again_makes_a_good_one_anew(whole: Counted) -> None:
    """`setup --again` is the way out when something is broken that no check sees."""
    whole.ready(again=True)
    assert whole.calls == ["make", "install"]


def test_two_starts_at_once_set_up_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second start says that it waits, and then finds the work done."""
    said: list[str] = []
    told = threading.Event()

    def hear(line: str, **_: object) -> None:
        said.append(line)
        if "waiting" in line:
            told.set()

    monkeypatch.setattr(lab, "print", hear, raising=False)
    starts = [Counted(checkout), Counted(checkout)]
    for one in starts:
        one.until = told  # the first is not done before the second has said it
    threads = [threading.Thread(target=one.ready) for one in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert starts[0].calls + starts[1].calls == ["make", "install"]
    assert sum("waiting" in line for line in said) == 1


def test_an_environment_of_somebody_else_is_left_alone(checkout: Path) -> None:
    """A .venv that another tool made is not deleted; a sentence says what to do."""
    config = checkout / ".venv" / "pyvenv.cfg"
    config.parent.mkdir()
    config.write_text("home = somewhere\n", encoding="utf-8")
    with pytest.raises(lab.Failure, match=r"did not make.*Move or delete"):
        lab.Environment(str(checkout)).make()
    assert config.exists()


@posix_only
def test_an_environment_that_cannot_be_removed_counts_as_half_made(whole: Counted) -> None:
    """The sentence gives the reason and the folder; what is left is never taken for whole."""
    shutil.rmtree(whole.folder)
    Path(whole.folder).symlink_to(Path(whole.root) / "notebooks")  # rmtree refuses to follow a link
    Path(whole.stamp).write_text(json.dumps(whole.wanted()), encoding="utf-8")
    with pytest.raises(lab.Failure, match=r"could not be removed \(OSError: .+delete the folder"):
        lab.Environment(whole.root).make()
    assert whole.plan()[0] == "make"


def test_no_news_popup(whole: Counted) -> None:
    """JupyterLab is told not to ask whether it may fetch news."""
    file = Path(whole.folder) / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    assert settings["@jupyterlab/apputils-extension:notification"] == {"fetchNews": "false", "checkForUpdates": False}


# --- what it says when something is wrong ---


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv(checkout: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Debian splits the venv module off; the sentence names the package to install."""
    monkeypatch.setitem(sys.modules, module, None)  # how an import is blocked
    with pytest.raises(lab.Failure, match="sudo apt install python3-venv"):
        lab.Environment(str(checkout)).make()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("WARNING: Retrying ... NewConnectionError('[Errno 111] Connection refused')", "Check the network"),
        (
            "NameResolutionError: [Errno -3] Temporary failure in name resolution\nNo matching distribution",
            "the network",
        ),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate", "PIP_CERT"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: No matching distribution found for jupyterlab>=99", "Try another Python"),
        ("ERROR: [WinError 32] The process cannot access the file", "Close JupyterLab"),
        ("something new", "setup --again"),
    ],
)
def test_a_failing_pip_is_explained(words: str, advice: str) -> None:
    """What pip said last stays readable, and the last line says what to do."""
    said = lab.explain(words)
    assert words.splitlines()[-1] in said
    assert advice in said.splitlines()[-1]


def test_a_taken_port_is_named_before_anything_is_set_up(checkout: Path) -> None:
    """The sentence names the port and another one to try; no half minute of set-up comes first."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = start(checkout, "--no-browser", "--port", str(port))
    assert said.returncode == 1
    assert f"Port {port} is taken" in said.stderr
    assert "--port" in said.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("options", "port"),
    [
        (["--port=9000"], 9000),
        (["--no-browser", "--port", "9000"], 9000),
        (["--ServerApp.port=9000"], 9000),
        (["--port"], None),
        (["--port=many"], None),
        (["--no-browser"], None),
        ([], None),
    ],
)
def test_the_port_asked_for(options: list[str], port: int | None) -> None:
    """A port is found in each form JupyterLab takes; what is no number is left to JupyterLab."""
    assert lab.port_in(options) == port


def test_a_free_port_is_free() -> None:
    """A port that nobody listens on is not reported as taken."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    assert not lab.is_taken(port)


@pytest.mark.parametrize(("words", "named"), [(["tset"], "'tset'"), (["setup", "now"], "--again")])
def test_a_wrong_word_is_named_before_anything_is_set_up(checkout: Path, words: list[str], named: str) -> None:
    """A typing error costs a sentence, not a set-up."""
    said = start(checkout, *words)
    assert said.returncode == 1
    assert named in said.stderr
    assert "Traceback" not in said.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("words", "command", "rest"),
    [
        ([], "lab", []),
        (["--no-browser"], "lab", ["--no-browser"]),
        (["07_todo_write.ipynb"], "lab", ["07_todo_write.ipynb"]),
        (["lab", "--port=1"], "lab", ["--port=1"]),
        (["test", "-k", "port"], "test", ["-k", "port"]),
        (["labkit", "run"], "labkit", ["run"]),
    ],
)
def test_words_become_a_command(words: list[str], command: str, rest: list[str]) -> None:
    """The first word is the command; with none, everything goes to JupyterLab."""
    assert lab.split(words) == (command, rest)


# --- what it shows while it works ---


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([], "fetching, 0 so far"),
        (["Collecting a", "  Downloading a.whl", "Collecting b"], "fetching, 2 so far"),
        (["Collecting a", "WARNING: Retrying (Retry(total=4"], "no answer from the package index, trying again"),
        (["WARNING: Retrying (Retry(total=4", "Collecting a"], "fetching, 1 so far"),
        (["Collecting a", "Installing collected packages: a, b, c"], "installing, 1 of 3 are there"),
    ],
)
def test_progress_of_pip(tmp_path: Path, lines: list[str], shown: str) -> None:
    """Each phase of pip has its words, also the one in which pip itself says nothing."""
    (tmp_path / "a-1.dist-info").mkdir()
    assert lab.describe_pip(lines, str(tmp_path)) == shown


def test_watch_returns_what_was_said_and_shows_what_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A title before, an end with the seconds after, and the lines for whoever asked."""
    command = [sys.executable, "-c", "print('one'); print('中文')"]
    assert lab.watch("work", command, str(tmp_path), len.__call__) == ["one", "中文"]
    assert re.fullmatch(r"work \.\.\.\n(  .*\n)*work: done \(\d+ s\)\n", capsys.readouterr().out)


def test_watch_raises_what_a_failing_command_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The error holds the output, errors included."""
    command = [sys.executable, "-c", "import sys; sys.exit('bad luck')"]
    with pytest.raises(subprocess.CalledProcessError) as caught:
        lab.watch("work", command, str(tmp_path), str)
    assert caught.value.output == "bad luck"
    assert "failed" in capsys.readouterr().out


# --- what it starts ---


def stand_in(environment: lab.Environment, code: int = 0) -> Path:
    """Put a script in place of the environment's Python that writes down its words and ends with a code."""
    told = Path(environment.root) / "told.txt"
    script = f"#!/bin/sh\npwd > '{told}'\nfor word in \"$@\"; do echo \"$word\" >> '{told}'; done\nexit {code}\n"
    Path(environment.python).write_text(script, encoding="utf-8")
    Path(environment.python).chmod(0o755)
    return told


@posix_only
def test_the_lab_opens_on_the_notebooks(whole: Counted) -> None:
    """JupyterLab's root is notebooks/, options come last, and root is allowed to be root."""
    told = stand_in(whole)
    assert start(Path(whole.root), "--no-browser", "--port=0").returncode == 0
    where, *words = told.read_text(encoding="utf-8").splitlines()
    notebooks = str(Path(whole.root) / "notebooks")
    assert where == notebooks
    assert words[:3] == ["-m", "jupyterlab", f"--ServerApp.root_dir={notebooks}"]
    assert words[-2:] == ["--no-browser", "--port=0"]
    assert ("--allow-root" in words) == (os.geteuid() == 0)


@posix_only
@pytest.mark.parametrize("code", [0, 1, 5])
def test_the_exit_code_of_the_tests_is_the_exit_code(whole: Counted, code: int) -> None:
    """`lab.py test` runs pytest in the repository, hands its words on, and fails when it fails."""
    told = stand_in(whole, code)
    assert start(Path(whole.root), "test", "-x", "tests/test a.py").returncode == code
    where, *words = told.read_text(encoding="utf-8").splitlines()
    assert where == whole.root
    assert words[:2] == ["-m", "pytest"]
    assert words[-2:] == ["-x", "tests/test a.py"]


@posix_only
def test_labkit_runs_where_it_was_typed(whole: Counted) -> None:
    """The package's command line works in the person's folder, not in the repository."""
    told = stand_in(whole)
    start(Path(whole.root), "labkit", "run", "--chapter", "5")
    words = told.read_text(encoding="utf-8").splitlines()
    assert words == [str(Path(whole.root).parent), "-m", "labkit", "run", "--chapter", "5"]


@posix_only
def test_a_failing_jupyterlab_says_what_to_do(whole: Counted) -> None:
    """JupyterLab's own words stay on the screen; a sentence with the next step follows."""
    stand_in(whole, 1)
    said = start(Path(whole.root))
    assert said.returncode == 1
    assert "JupyterLab ended with code 1" in said.stderr
    assert "setup --again" in said.stderr


@posix_only
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_ending_the_lab_ends_what_it_started(whole: Counted, number: signal.Signals, code: int) -> None:
    """Ctrl-C, which the terminal gives to both, and a polite kill of lab.py alone leave no process behind."""
    told = Path(whole.root) / "pid.txt"
    script = f"#!/bin/sh\necho $$ > '{told}.new'; mv '{told}.new' '{told}'\nexec sleep 60\n"
    Path(whole.python).write_text(script, encoding="utf-8")
    Path(whole.python).chmod(0o755)
    command = [sys.executable, str(Path(whole.root) / "lab.py"), "--no-browser"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not told.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert told.exists()
    child = int(told.read_text(encoding="utf-8"))
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert b"Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
