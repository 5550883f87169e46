"""Exercises: solutions pass, stubs are not attempted, wrong answers are told apart, and nothing stops a notebook."""

import ast
import builtins
import os
import re
import sys
import threading
import tomllib
from pathlib import Path

import pytest

from labkit import AssistantMessage, SystemMessage, TodoTracker, ToolCall, ToolMessage, UserMessage, todos
from labkit.classroom import exercises
from labkit.classroom.exercises import check, hint, made, progress, solution, speak, stub_of, text_of
from labkit.classroom.guard import guarded, put_back

WRONG = [
    pytest.param(exercise, one["breaks"], one["code"], id=f"{exercise} {one['breaks']}")
    for path in sorted((Path(__file__).parent / "wrong_answers").glob("*.toml"))
    for exercise, answers in tomllib.loads(path.read_text(encoding="utf-8")).items()
    for one in answers
]
ALL = exercises.exercises()
each_exercise = pytest.mark.parametrize("exercise", ALL)


@pytest.fixture(autouse=True)
def fresh_kernel():
    """Each test begins with no notes."""
    exercises._notes.cache_clear()
    yield
    exercises._notes.cache_clear()


# ---- every exercise ----


@each_exercise
def test_the_solution_passes(exercise):
    """The solution in the texts is right."""
    assert check(exercise, made(exercise, text_of(exercise)["solution"])).outcome == "ok"


@each_exercise
def test_the_stub_is_not_attempted(exercise):
    """An untouched stub is neither right nor wrong, and the line says so."""
    assert repr(check(exercise, stub_of(exercise))) == f"{exercise}: not attempted"


@each_exercise
def test_no_answer_is_not_attempted(exercise):
    """A check without an answer says the same."""
    assert check(exercise).outcome == "not_attempted"


@pytest.mark.parametrize(("exercise", "breaks", "code"), WRONG)
def test_a_wrong_answer_is_named_by_what_it_breaks(exercise, breaks, code):
    """The line tells which property fails, and does not tell the answer."""
    verdict = check(exercise, made(exercise, code))
    assert (verdict.outcome, verdict.failed) == ("not_yet", breaks), verdict
    assert repr(verdict).startswith(f"{exercise}: not yet: ")
    assert "\n" not in repr(verdict)


@each_exercise
def test_three_wrong_answers_are_told_apart(exercise):
    """For each exercise the tests hold at least three wrong answers that break different properties."""
    assert len({one.values[1] for one in WRONG if one.values[0] == exercise}) >= 3


@each_exercise
def test_the_texts_are_complete(exercise):
    """Each exercise has all its texts, three hints, and a first line by which a notebook finds its cell."""
    text = text_of(exercise)
    assert {"title", "difficulty", "minutes", "name", "imports", "task", "stub", "hints", "solution", "failed"} <= set(
        text
    )
    assert text["difficulty"] in ("easy", "medium", "hard")
    assert type(text["minutes"]) is int
    assert len(text["hints"]) == 3
    for code in (text["stub"], text["solution"]):
        assert code.strip().splitlines()[0] == f"# Exercise {exercise}"


@each_exercise
def test_each_sentence_can_be_reached(exercise):
    """A property that a check may name has its sentence, and each sentence belongs to a property of the check."""
    name = exercise.replace(".", "_")
    source = Path(sys.modules[exercises.check_of(exercise).__module__].__file__).read_text(encoding="utf-8")
    source += (Path(exercises.__file__).parent / "checks" / "broken.py").read_text(encoding="utf-8")
    assert f"def check_{name}(" in source
    for failed in text_of(exercise)["failed"]:
        assert f'"{failed}"' in source, failed


@pytest.mark.parametrize("book", sorted({exercise[:2] for exercise in ALL}))
def test_each_property_has_its_sentence(book):
    """Whatever a check of a notebook can name as failed, the texts of that notebook or the common ones can say."""
    folder = Path(exercises.__file__).parent / "checks"
    named = set()
    for path in (folder / f"nb{book}.py", folder / "broken.py", folder / "common.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("require", "NotYet"):
                said = node.args[1:] if node.func.id == "require" else node.args
                named |= {one.value for one in said if isinstance(one, ast.Constant)}
    known = set(exercises.common()) | {name for one in exercises.exercises(book) for name in text_of(one)["failed"]}
    tests = {"survivors", "fails_on_the_true_agent"}  # only where tests are the answer
    assert named - tests <= known


def test_each_wanted_form_has_its_words():
    """What a check wants an answer to be is said in the texts; no check holds words for a reader."""
    checks = Path(exercises.__file__).parent / "checks"
    source = "".join(path.read_text(encoding="utf-8") for path in checks.glob("*.py"))
    assert set(re.findall(r'wanted="([^"]*)"', source)) == set(exercises.common()["wanted"])


# ---- nothing stops a notebook ----

HOSTILE = {
    "endless loop": ("while True: pass", "lines"),
    "endless loop in a bare except": (
        "while True:\n   try:\n    while True: pass\n   except: pass",
        "lines",
    ),
    "endless loop that returns from except": (
        "try:\n    while True: pass\n  except BaseException: return ()",
        "lines",
    ),
    "recursion": ("return self.record_tool_round(names)", "recursion"),
    "raise": ("raise KeyError('x')", "raised"),
    "raise with words that loop": (
        "class Bad(Exception):\n    def __str__(self):\n      while True: pass\n  raise Bad",
        "raised",
    ),
    "raise BaseException": ("raise BaseException('out')", "raised"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "raised"),
    "missing import": ("import a_package_that_is_not_there", "raised"),
    "exit": ("import sys; sys.exit(3)", "exit"),
    "quit": ("quit()", "exit"),
    "input": ("input('?')", "raised"),
    "wrong type": ("return 7", "returns_messages"),
    "generator": ("yield 1", None),
    "string": ("return 'abc'", None),
    "flood of output": ("print('x' * 10**7); raise ValueError('x' * 10**6)", "raised"),
    "broken builtins": ("import builtins; builtins.len = None; raise ValueError", "raised"),
    "folder left": ("import os; os.chdir('/'); raise ValueError", "raised"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_gets_one_line(name, capsys):
    """Whatever student code does, the check returns one line, prints nothing, and leaves things as they were."""
    body, failed = HOSTILE[name]
    names = {"TodoTracker": TodoTracker}
    exec(f"class Mine(TodoTracker):\n count = 0\n def record_tool_round(self, names):\n  {body}", names)
    before, folder = builtins.len, os.getcwd()
    verdict = check("08.1", names["Mine"])
    assert verdict.outcome == "not_yet"
    assert failed in (None, verdict.failed), verdict
    assert "\n" not in repr(verdict)
    assert len(repr(verdict)) < 300
    assert (builtins.len, os.getcwd()) == (before, folder)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("answer", [None, 7, "text", {}, type, lambda: 1])
@each_exercise
def test_any_object_gets_one_line(exercise, answer):
    """An answer of a wrong kind is never an exception and never right."""
    verdict = check(exercise, answer)
    assert verdict.outcome == "not_yet"
    assert "\n" not in repr(verdict)


def test_a_students_own_words_stay_on_the_line():
    """A name that a student made up is shown short and on one line."""
    line = repr(check("08.3", {"a\nb" + "x" * 500: TodoTracker}))
    assert line.startswith("08.3: not yet: there is no property a bxxx")
    assert "\n" not in line
    assert len(line) < 200


def test_a_kernels_own_exit_and_input_are_out_of_reach(monkeypatch):
    """What IPython puts in the place of exit() and input() ends the kernel or waits for a person: not in a check."""
    called = []
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "exit", lambda: called.append("exit"), raising=False)
    monkeypatch.setattr(builtins, "input", lambda prompt: called.append("input"))
    theirs = main.exit, builtins.input
    assert isinstance(guarded(lambda: main.exit()).failure, SystemExit)
    assert isinstance(guarded(lambda: builtins.input("?")).failure, RuntimeError)
    assert called == []
    assert (main.exit, builtins.input) == theirs


def test_code_that_waits_is_left_behind():
    """A thread that sleeps cannot be ended; the check goes on without it."""
    gate = threading.Event()
    ran = guarded(gate.wait, seconds=0.05)
    gate.set()
    assert ran.stopped == "seconds"


def test_without_threads_the_budget_still_ends_a_loop(monkeypatch):
    """Where no thread can start, the code runs in place and its lines are counted."""

    def no_threads(self):
        raise RuntimeError("can't start new thread")

    def loop():
        while True:
            pass

    monkeypatch.setattr(threading.Thread, "start", no_threads)
    assert guarded(loop, instructions=1000).stopped == "lines"


def test_a_changed_package_is_put_back_and_named():
    """Code that assigns to labkit's own names is told so, and the next check sees the package as it was imported."""

    def patches():
        todos.STALE_TOOL_ROUNDS = 5
        TodoTracker.before_model = None

    true = TodoTracker.before_model
    assert guarded(patches).patched == ("todos.STALE_TOOL_ROUNDS", "TodoTracker.before_model")
    assert (todos.STALE_TOOL_ROUNDS, TodoTracker.before_model) == (3, true)


@pytest.mark.parametrize("kind", [SystemMessage, UserMessage, AssistantMessage, ToolMessage, ToolCall])
def test_what_a_class_inherits_is_put_back_too(kind):
    """A method that a class of the package has from another one is put back like its own."""
    before = repr(kind("a", "b") if kind in (ToolMessage, ToolCall) else kind("a"))
    found = guarded(lambda: setattr(kind, "__repr__", lambda message: "patched"))
    assert found.patched == (f"{kind.__name__}.__repr__",)
    assert repr(kind("a", "b") if kind in (ToolMessage, ToolCall) else kind("a")) == before


def test_a_package_changed_before_the_check_is_put_back(monkeypatch):
    """A cell that changed labkit does not make a right answer wrong; the line names what was changed."""
    monkeypatch.setattr(todos, "STALE_TOOL_ROUNDS", 5)
    line = repr(check("08.5", made("08.5", text_of("08.5")["solution"])))
    assert line.startswith("08.5: ok")
    assert "todos.STALE_TOOL_ROUNDS of labkit had been changed" in line


def test_ordinary_use_changes_nothing_in_the_package():
    """All solutions run, and no name of the package has to be put back."""
    for exercise in ALL:
        check(exercise, made(exercise, text_of(exercise)["solution"]))
    assert put_back() == ()


# ---- hints, solution, progress ----


def test_hints_come_in_three_layers_and_then_the_solution():
    """Each call opens the next layer; after the third it is the solution."""
    found = [repr(hint("08.1")) for _ in range(5)]
    texts = text_of("08.1")["hints"]
    assert found[:3] == [f"Hint {n} of 3 for 08.1: {texts[n - 1]}" for n in (1, 2, 3)]
    assert found[3] == found[4] == repr(solution("08.1"))
    assert text_of("08.1")["solution"].strip() in found[3]


def test_a_hint_asked_for_by_its_layer_counts_nothing():
    """With a layer named, the same call says the same each time."""
    assert hint("08.1", 2) == hint("08.1", 2)
    assert hint("08.1").startswith("Hint 1")


def test_progress_is_a_table_in_words():
    """progress() has a line for each exercise that was checked, with its last result and the hints taken."""
    assert progress() == "No exercise was checked yet in this kernel."
    check("08.4", {"silences": ..., "reminders": [...], "because": ...})
    check("07.2", print)
    hint("07.2")
    assert repr(progress()).splitlines() == [
        "exercise                                            result         hints",
        "07.2 ASCII serialisation                            not yet        1",
        "08.4 Should a refused update silence the reminder?  not attempted  0",
        "",
        "2 checked: 0 ok, 1 not yet, 1 not attempted.",
    ]


@pytest.mark.parametrize("name", ["99.9", "08.99", "", "../08.1", None])
def test_an_unknown_exercise_is_answered_in_words(name):
    """A wrong number names the right ones, and raises nothing."""
    for said in (check(name, 1), hint(name), solution(name)):
        assert "there is no exercise" in repr(said)
        assert "08.1" in repr(said) or name == "08.99"


def test_a_language_is_a_folder(tmp_path, monkeypatch):
    """Texts of another language are used as far as they go; what they lack stays English; an unknown one is refused."""
    for path in (exercises.TEXTS / "en").glob("*.toml"):
        (tmp_path / "en").mkdir(exist_ok=True)
        (tmp_path / "en" / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "zh").mkdir()
    (tmp_path / "zh" / "common.toml").write_text('not_attempted = "还没做"', encoding="utf-8")
    (tmp_path / "zh" / "08.toml").write_text('["08.1"]\ntitle = "数轮次"\nhints = ["一", "二", "三"]', encoding="utf-8")
    monkeypatch.setattr(exercises, "TEXTS", tmp_path)
    exercises._read.cache_clear()
    try:
        with pytest.raises(ValueError, match="choose one of: en, zh"):
            speak("xx")
        speak("zh")
        assert repr(check("08.1")) == "08.1: 还没做"
        assert repr(hint("08.1")) == "Hint 1 of 3 for 08.1: 一"
        assert "the answer should be a class" in repr(check("08.1", 7))
    finally:
        exercises._read.cache_clear()


def test_the_same_code_is_the_same_answer():
    """Comments, docstrings and line numbers do not make an attempt; code does."""
    code = (
        text_of("08.1")["stub"]
        .replace("count = 0", "count = 0  # later")
        .replace("        return ()", '        """Soon."""\n        return ()')
    )
    assert check("08.1", made("08.1", code)).outcome == "not_attempted"
    assert check("08.1", made("08.1", code.replace("count = 0", "count = 1"))).outcome == "not_yet"
