"""Set up what is missing, then open the lab or run its tests.

  python lab.py                 open JupyterLab on the notebooks; options (--no-browser, --port 9000) go on to it
  python lab.py test            run every test; what follows goes on to pytest
  python lab.py setup           only set up; with --again, make the environment anew
  python lab.py regenerate      run the notebooks again and store their outputs; with --check, only compare
  python lab.py labkit          the package's own command line: labkit run --help
  python lab.py --help          this text

It needs Python 3.11 to 3.14 and nothing else. What it installs goes into the folder .venv beside it: no environment has
to be activated, and deleting .venv undoes everything. A start that finds the environment ready installs nothing.
"""

# Old Pythons must be able to read this file as far as the sentence below, even 2.7: so there are no f-strings
# and no annotations (types stand in comments), and everything newer is imported after that sentence.
from __future__ import print_function

import os
import sys

OLDEST = (3, 11)
TOO_NEW = (3, 15)
# As it is typed here: python3 lab.py, python3.12 lab.py ...
ME = os.path.splitext(os.path.basename(sys.executable or "python"))[0] + " lab.py"

if not OLDEST <= sys.version_info[:2] < TOO_NEW:
    sys.exit(
        "The lab needs Python 3.11, 3.12, 3.13 or 3.14, and this is Python %d.%d.%d. "
        "Install one of them, then start the lab with it, for example: python3.12 lab.py "
        "(on Windows: py -3.12 lab.py)." % sys.version_info[:3]
    )

import contextlib
import hashlib
import importlib.util
import json
import platform
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator  # noqa: F401  # for the types in comments

ROOT = os.path.dirname(os.path.abspath(__file__))
NAME = "agent-loop-lab"
COMMANDS = ("lab", "test", "setup", "regenerate", "labkit")
# Without these JupyterLab asks each new reader whether it may fetch news.
QUIET = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
NO_WAY = (
    "NewConnectionError",
    "NameResolutionError",
    "Failed to establish a new connection",
    "name resolution",
    "getaddrinfo failed",
    "ProxyError",
    "ConnectTimeout",
    "Read timed out",
    "Connection reset",
    "Max retries exceeded",
    "after connection broken",
    "Network is unreachable",
)
NO_SUCH_SET = ("No matching distribution found", "ResolutionImpossible")
# What a failing pip wrote -> what to do about it. First match wins.
ADVICE = (
    (
        ("No space left on device", "not enough space"),
        "The disk is full: the environment needs about 800 MB. Make room, then run the same command again.",
    ),
    (
        ("CERTIFICATE_VERIFY_FAILED", "SSLError"),
        "The network's certificate was not accepted. Behind a company proxy, point PIP_CERT at the company's "
        "certificate file, then run the same command again.",
    ),
    (
        NO_WAY,
        "The packages could not be fetched: there is no way to the package index. Check the network (or the proxy: "
        "HTTPS_PROXY), then run the same command again.",
    ),
    (
        NO_SUCH_SET,
        "There is no set of packages for this Python. Try another Python from 3.11 to 3.14, "
        "or get the newest version of the lab.",
    ),
    (
        ("Permission denied", "Access is denied", "WinError 5", "WinError 32"),
        "A file in .venv could not be written. Close JupyterLab and other programs that use it, see that the folder "
        "belongs to you, then run the same command again.",
    ),
)


class Failure(Exception):
    """A sentence for the person at the keyboard: what went wrong and what to do next."""


# --- what it shows while it works ---


class Progress(object):
    """One line that tells what is going on: rewritten twice a second on a terminal, now and then in a log."""

    def __init__(self, title):
        # type: (str) -> None
        self.title = title
        self.started = self.shown = time.monotonic()
        self.live = sys.stdout.isatty()
        if not self.live:
            print(title + " ...", flush=True)

    def seconds(self):
        # type: () -> int
        return int(time.monotonic() - self.started)

    def show(self, detail):
        # type: (str) -> None
        text = "%s: %s (%d s)" % (self.title, detail, self.seconds())
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", flush=True)
        elif time.monotonic() - self.shown >= 5:
            self.shown = time.monotonic()
            print("  " + text, flush=True)

    def end(self, how):
        # type: (str) -> None
        text = "%s: %s (%d s)" % (self.title, how, self.seconds())
        if self.live:
            text = "\r" + text.ljust(shutil.get_terminal_size().columns - 1)
        print(text, flush=True)


def watch(title, command, cwd, describe):
    # type: (str, list[str], str, Callable[[list[str]], str]) -> list[str]
    """Run a command, show what `describe` makes of its lines so far, return them; CalledProcessError if it failed."""
    env = dict(os.environ, PYTHONIOENCODING="utf-8")
    env.pop("PIP_USER", None)  # a person's setting for outside of environments; inside one pip refuses it
    lines = []  # type: list[str]
    progress = Progress(title)
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def read():
        # type: () -> None
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                lines.append(line.decode("utf-8", "replace").rstrip())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    how = "stopped"
    try:
        while reader.is_alive():
            reader.join(0.5)
            progress.show(describe(lines))
        how = "done" if process.wait() == 0 else "failed"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        progress.end(how)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output="\n".join(lines))
    return lines


def describe_pip(lines, site):
    # type: (list[str], str) -> str
    """How far pip is, from what it wrote and, since it unpacks in silence, from what lies in site-packages."""
    for line in reversed(lines):
        if line.startswith("Installing collected packages:"):
            total = line.count(",") + 1
            try:
                there = sum(name.endswith(".dist-info") for name in os.listdir(site))
            except OSError:
                there = 0
            return "installing, %d of %d are there" % (min(there, total), total)
        if line.startswith("WARNING: Retrying"):
            return "no answer from the package index, trying again"
        if line.startswith("Collecting "):
            break
    found = sum(line.startswith("Collecting ") for line in lines)
    return "fetching, %d so far" % found


# --- the environment ---


def digest(path):
    # type: (str) -> str
    """A short name for what a file says, the same whatever its line ends; "" for no file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read().replace(b"\r\n", b"\n")).hexdigest()[:16]
    except FileNotFoundError:
        return ""


class Environment(object):
    """The folder .venv of one checkout: is it there, is it whole, does it fit, and how it is made.

    A stamp in it, written last, records what it was made from. `plan` compares; `ready` acts.
    """

    def __init__(self, root):
        # type: (str) -> None
        self.root = os.path.abspath(root)
        self.folder = os.path.join(self.root, ".venv")
        windows = os.name == "nt"
        self.bin = os.path.join(self.folder, "Scripts" if windows else "bin")
        self.python = os.path.join(self.bin, "python.exe" if windows else "python")
        library = "Lib" if windows else os.path.join("lib", "python%d.%d" % sys.version_info[:2])
        self.site = os.path.join(self.folder, library, "site-packages")
        self.stamp = os.path.join(self.folder, "lab-ready.json")
        # Made with one Python, so only that Python uses it; the others go by the bounds in pyproject.toml.
        self.constraints = "constraints/%d.%d.txt" % sys.version_info[:2]

    def wanted(self):
        # type: () -> dict[str, str]
        """What an environment made now would be made from."""
        return {
            "place": self.root,
            "python": "%s %s %s" % (platform.python_implementation(), platform.python_version(), platform.machine()),
            "pyproject": digest(os.path.join(self.root, "pyproject.toml")),
            "constraints": digest(os.path.join(self.root, self.constraints)),
        }

    def made_from(self):
        # type: () -> dict[str, str] | None
        """What the stamp says; None if the set-up never came to its end."""
        try:
            with open(self.stamp, encoding="utf-8") as file:
                said = json.load(file)
        except (OSError, ValueError):
            return None
        return said if isinstance(said, dict) else None

    def is_ours(self):
        # type: () -> bool
        """False for a whole environment that somebody else made here: that one is not ours to delete."""
        try:
            with open(os.path.join(self.folder, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
                return NAME in file.read()
        except OSError:
            return True  # a rest of something, no environment

    def plan(self):
        # type: () -> tuple[str, str]
        """What has to be done, "keep", "update" or "make", and why."""
        if not os.path.lexists(self.folder):
            return "make", "first start"
        made, wanted = self.made_from(), self.wanted()
        if made is None:
            return "make", "the last set-up did not come to its end"
        if made.get("place") != wanted["place"]:
            return "make", "the folder was moved or copied"
        if made.get("python") != wanted["python"]:
            return "make", "it was made with %s, and this is %s" % (made.get("python"), wanted["python"])
        if not os.path.exists(self.python):
            return "make", "the Python it was made with is gone"
        for name, file in (("pyproject", "pyproject.toml"), ("constraints", self.constraints)):
            if made.get(name) != wanted[name]:
                return "update", file + " has changed"
        return "keep", ""

    def ready(self, again=False):
        # type: (bool) -> None
        """Return when the environment is whole and fits; make or mend it if need be."""
        if not again and self.plan()[0] == "keep":
            return
        with self.lock():
            # Asked once more: another start may have done it while this one waited.
            todo, why = ("make", "as asked") if again else self.plan()
            if todo == "keep":
                return
            print("Setting up the lab in .venv (%s). It takes a minute or two, once." % why, flush=True)
            if todo == "make":
                self.make()
            else:
                os.remove(self.stamp)  # until the end it counts as half-made
            self.install()
            self.settle()

    @contextlib.contextmanager
    def lock(self):
        # type: () -> Iterator[None]
        """Hold the right to change .venv; a second start waits. The system lets go of it if we die."""
        try:
            file = open(self.folder + ".lock", "a", encoding="utf-8")  # noqa: SIM115  # closed below
        except OSError as error:
            raise Failure(
                "Nothing can be written into %s (%s). Put the lab into a folder of your own."
                % (self.root, error.strerror)
            )
        with file:
            told = False
            while not take(file.fileno()):
                if not told:
                    print("Another start is setting up the lab; waiting for it ...", flush=True)
                    told = True
                time.sleep(0.3)
            yield

    def make(self):
        # type: () -> None
        """An empty environment with pip, in place of whatever was there."""
        if not self.is_ours():
            raise Failure(
                "There is a .venv here that lab.py did not make. Move or delete the folder %s, "
                "then run the same command again." % self.folder
            )
        if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
            raise Failure(
                "This Python comes without its venv module. On Debian or Ubuntu: sudo apt install python3-venv. "
                "Elsewhere install a complete Python 3.11 to 3.14. Then run the same command again."
            )
        if os.path.lexists(self.folder):
            self.remove()
        command = [sys.executable, "-m", "venv", "--prompt", NAME, self.folder]
        try:
            watch("1 of 3, an empty environment", command, self.root, lambda lines: "making it")
        except subprocess.CalledProcessError as error:
            raise Failure(
                "%s\nPython could not make an environment; its words are above. On Debian or Ubuntu this helps: "
                "sudo apt install python3-venv. Then run the same command again." % error.output
            )

    def remove(self):
        # type: () -> None
        """Take away what is there. The stamp goes first: should we be stopped, nobody takes the rest for whole."""
        delete = "import shutil, sys; shutil.rmtree(sys.argv[1])"
        try:
            if os.path.exists(self.stamp):
                os.remove(self.stamp)
            # In a process of its own only to show that it goes on: a cold disk takes a minute over 30,000 files.
            watch("The old .venv", [sys.executable, "-c", delete, self.folder], self.root, lambda lines: "removing it")
        except (OSError, subprocess.CalledProcessError) as error:
            why = str(getattr(error, "output", error)).strip().splitlines()[-1]
            raise Failure(
                "The old .venv could not be removed (%s). Close JupyterLab and other programs that use it, or delete "
                "the folder %s yourself, then run the same command again." % (why, self.folder)
            )

    def install(self):
        # type: () -> None
        """The package itself, editable, and all that the lab and its tests need."""
        pinned = ["-c", self.constraints] if os.path.exists(os.path.join(self.root, self.constraints)) else []
        wanted = ["-e", ".[lab,test]"]
        try:
            # The pip that Python brings may be years old, and then takes twice as long over what follows.
            self.pip("2 of 3, pip", ["--upgrade", "pip"])
            try:
                self.pip("3 of 3, packages", wanted + pinned)
            except subprocess.CalledProcessError as error:
                # The versions were recorded on one machine; another system or patch release may lack one of them.
                if not pinned or has(error.output, NO_WAY) or not has(error.output, NO_SUCH_SET):
                    raise
                print("%s does not suit this machine; going by pyproject.toml alone." % self.constraints, flush=True)
                self.pip("3 of 3, packages", wanted)
        except subprocess.CalledProcessError as error:
            raise Failure(explain(error.output))

    def pip(self, title, words):
        # type: (str, list[str]) -> None
        """`pip install words`, shown while it goes."""
        command = [self.python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        command += ["--progress-bar", "off"] + words
        watch(title, command, self.root, lambda lines: describe_pip(lines, self.site))

    def settle(self):
        # type: () -> None
        """The last touches, then the stamp: only now is the environment whole."""
        settings = os.path.join(self.folder, "share", "jupyter", "lab", "settings")
        os.makedirs(settings, exist_ok=True)
        with open(os.path.join(settings, "overrides.json"), "w", encoding="utf-8") as file:
            json.dump(QUIET, file)
        with open(self.stamp + ".new", "w", encoding="utf-8") as file:
            json.dump(self.wanted(), file, indent=1)
        os.replace(self.stamp + ".new", self.stamp)


def take(handle):
    # type: (int) -> bool
    """Try to lock an open file for this process; True if it is ours now, or if this disk knows no locks."""
    if sys.platform == "win32":
        import msvcrt

        try:
            os.lseek(handle, 0, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
    else:
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def has(output, signs):
    # type: (str, tuple[str, ...]) -> bool
    """Does one of the signs stand in what pip wrote?"""
    return any(sign in output for sign in signs)


def explain(output):
    # type: (str) -> str
    """The end of what pip wrote, and a sentence on what to do about it."""
    fitting = [advice for signs, advice in ADVICE if has(output, signs)]
    fitting.append("pip could not install the packages. Run %s setup --again to try anew." % ME)
    tail = [line for line in output.splitlines() if line.strip()][-12:]
    return "\n".join(["What pip said last:"] + ["  " + line for line in tail] + ["", fitting[0]])


# --- what it starts ---


def hand_over(command, cwd, environment):
    # type: (list[str], str, Environment) -> int
    """Run a program of the environment on this terminal and return its exit code."""
    path = environment.bin + os.pathsep + os.environ.get("PATH", "")
    env = dict(os.environ, PATH=path, VIRTUAL_ENV=environment.folder)
    # Tabs that JupyterLab reopens: those of this lab, not of other work of the same person.
    env.setdefault("JUPYTERLAB_WORKSPACES_DIR", os.path.join(environment.folder, "share", "jupyter", "workspaces"))
    process = subprocess.Popen(command, cwd=cwd, env=env)
    interrupts = 0
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The terminal gave the program the same Ctrl-C: let it close in peace, unless asked once more.
            interrupts += 1
            if interrupts > 1:
                process.terminate()
        except SystemExit:
            process.terminate()
            process.wait()
            raise
        else:
            return code if code >= 0 else 128 - code


def port_in(options):
    # type: (list[str]) -> int | None
    """The port that somebody asked for, if any."""
    for here, after in zip(options, (options + [""])[1:], strict=True):
        name, _, value = here.partition("=")
        if name in ("--port", "--ServerApp.port"):
            value = value or after
            return int(value) if value.isdigit() else None
    return None


def is_taken(port):
    # type: (int) -> bool
    """Does a program on this machine listen there already?"""
    with socket.socket() as probe:
        if os.name != "nt":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return True
    return False


def open_lab(environment, options):
    # type: (Environment, list[str]) -> int
    """JupyterLab on the notebooks, until Ctrl-C."""
    notebooks = os.path.join(environment.root, "notebooks")
    if not os.path.isdir(notebooks):
        raise Failure("There is no folder %s. Get the whole repository: lab.py alone is not the lab." % notebooks)
    # answer_yes: one Ctrl-C is enough. Notebooks are saved as one works.
    command = [
        environment.python,
        "-m",
        "jupyterlab",
        "--ServerApp.root_dir=" + notebooks,
        "--ServerApp.answer_yes=True",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    print("Opening JupyterLab; Ctrl-C in this window closes it.", flush=True)
    code = hand_over(command + options, notebooks, environment)
    if code not in (0, 130, 143):
        raise Failure(
            "JupyterLab ended with code %d; its own words are above. If no port was free, name one: %s --port 9000. "
            "If something is broken, make the environment anew: %s setup --again." % (code, ME, ME)
        )
    return code


def check_words(command, rest):
    # type: (str, list[str]) -> None
    """Refuse what cannot work before half a minute is spent on setting up."""
    if command == "setup" and rest not in ([], ["--again"]):
        raise Failure("setup takes nothing but --again. Try: %s --help" % ME)
    if command == "lab":
        port = port_in(rest)
        if port is not None and is_taken(port):
            raise Failure(
                "Port %d is taken, perhaps by another lab that is still open. Close that, or name another port: "
                "%s --port %d" % (port, ME, port + 1 if port < 65535 else 9000)
            )


def split(words):
    # type: (list[str]) -> tuple[str, list[str]]
    """The command and what follows it; no command means the lab."""
    if not words or words[0].startswith("-") or words[0].endswith(".ipynb"):
        return "lab", words
    if words[0] not in COMMANDS:
        raise Failure("There is no command %r. There are: %s. Try: %s --help" % (words[0], ", ".join(COMMANDS), ME))
    return words[0], words[1:]


def run(words):
    # type: (list[str]) -> int
    """Do what the words after lab.py ask for, and return the exit code."""
    if words[:1] in (["--help"], ["-h"], ["help"]):
        print((__doc__ or "").replace("python lab.py", ME).strip())
        return 0
    command, rest = split(words)
    check_words(command, rest)
    environment = Environment(ROOT)
    environment.ready(again=command == "setup" and rest == ["--again"])
    if command == "setup":
        print("The environment is ready. Open the lab: %s" % ME)
        return 0
    if command == "test":
        # More than four workers gain nothing: each holds a kernel.
        workers = ["-n", "logical", "--maxprocesses", "4"]
        return hand_over([environment.python, "-m", "pytest"] + workers + rest, environment.root, environment)
    if command == "regenerate":
        return hand_over(
            [environment.python, "-m", "labkit.classroom.regenerate"] + rest, environment.root, environment
        )
    if command == "labkit":
        return hand_over([environment.python, "-m", "labkit"] + rest, os.getcwd(), environment)
    return open_lab(environment, rest)


def stop(number, frame):
    # type: (int, object) -> None
    """Leave through the finally clauses, so that no pip and no server is left behind."""
    raise SystemExit(128 + number)


def main(words):
    # type: (list[str]) -> int
    """Run, and turn what went wrong into a sentence."""
    for stream in (sys.stdout, sys.stderr):
        # A console that cannot show Chinese shows ? and goes on.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, stop)
    try:
        return run(words)
    except Failure as failure:
        print("\n%s" % failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. If that was in the middle of setting up, the next start begins it anew.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
