"""The capstone: worked solutions pass, wrong ones are named by what they break, nothing stops it, reports are whole."""

import os
import re
from pathlib import Path

import nbformat
import pytest

from labkit import SystemMessage, say
from labkit.classroom import capstone, students
from labkit.classroom.capstone import acceptance, plain, run_tests, trace
from labkit.classroom.checks import nb12
from labkit.classroom.checks.common import read, update
from labkit.classroom.exercises import check, made, stub_of, text_of
from labkit.todos import TODO_STALE_REMINDER

SOLUTIONS = Path(__file__).parents[1] / "notebooks" / "solutions"
SECOND = SOLUTIONS / "capstone_second.ipynb"
TEXT = text_of("12.1")
DEFENCE = made("12.2", text_of("12.2")["solution"])


def exercise_cell(path):
    """The code of a notebook's own solution of exercise 12.1."""
    cells = nbformat.read(path, as_version=4).cells
    return next(cell.source for cell in cells if cell.source.startswith("# Exercise 12.1"))


A = TEXT["solution"]
# With the imports of its notebook, where the calls of its tests are made.
B = nbformat.read(SECOND, as_version=4).cells[1].source + "\n" + exercise_cell(SECOND)
C = """
class FarAway(TodoTracker):
    agent, plan, mark = None, (), 0

    def before_model(self):
        if self.todos is not self.plan:
            self.plan, self.mark = self.todos, 0
        distance = plan_distance(ModelRequest(self.agent.history))
        if distance is None or distance - self.mark < PLAN_BUDGET:
            return ()
        self.mark = distance
        return (SystemMessage(TODO_STALE_REMINDER),)


def build(model, workspace):
    tracker = FarAway()
    tracker.agent = build_agent(P05, model, workspace=workspace, todos=tracker)
    return tracker.agent


mine = {"change": "C", "build": build, "tests": []}
"""
D = """
def build(model, workspace):
    def only_short(call, result):
        return HookAnswer(output=result._replace(content="cut")) if len(result.content) > 500 else None

    return build_agent(P05, model, workspace=workspace, hooks=Hooks(PostToolUse=only_short))


def test_cut(build):
    assert trace(build, [read(), long_read(), say("done")]).settled[1].result.content == "cut"


mine = {"change": "D", "build": build, "tests": [test_cut]}
""".replace("long_read()", "__import__('labkit').call('read_file', path='long.txt')")
WORKED = {"A": A, "B": B, "C": C, "D": D}


def solved(change, *edits):
    """The worked solution of a change, with parts of its text replaced."""
    code = WORKED[change]
    for old, new in edits:
        assert old in code, old
        code = code.replace(old, new)
    return made("12.1", code)


def without_tests(change, *edits):
    """The same, and no own tests, so that only the hidden traces judge it."""
    return {**solved(change, *edits), "tests": []}


# ---- right answers ----


@pytest.mark.parametrize("change", WORKED)
def test_a_worked_solution_passes(change):
    """Each change can be built with the public parts alone, and all that a program can see holds."""
    mine = solved(change)
    report = acceptance(**mine)
    assert report.ok, report
    assert [line.outcome for line in report.lines] == ["ok", "ok", "for a reader", "for a reader"]
    assert check("12.1", mine).outcome == "ok"


def test_the_worked_solutions_are_those_of_the_notebooks():
    """Two solutions are worked out in notebooks: change A as the exercise's solution, change B beside it."""
    assert exercise_cell(SOLUTIONS / "12_capstone.ipynb") == A.strip()
    assert [made("12.1", code)["change"] for code in (A, B)] == ["A", "B"]


def test_no_student_notebook_is_made_of_the_second(tmp_path, capsys):
    """The second worked solution is for reading; where all solutions are meant, it is passed over."""
    assert students.main(["--check", str(SECOND.parent / "12_capstone.ipynb"), str(SECOND)]) == 0
    assert SECOND.name not in capsys.readouterr().out
    assert not (SECOND.parents[1] / SECOND.name).exists()


# ---- not attempted ----


def test_the_stub_is_not_attempted():
    """An untouched stub says so in each line of the report, and its report can be exported."""
    report = acceptance(**stub_of("12.1"))
    assert {line.outcome for line in report.lines} == {"not attempted"}
    assert not report.ok


# ---- wrong answers ----

NUDGE = "return (SystemMessage(VERIFY_NUDGE),)"
REMIND = "return (SystemMessage(TODO_STALE_REMINDER),)"
HOOK = "hooks=Hooks(PreToolUse=one_in_progress)"
RULE = 'rules=[__import__("labkit").Rule("one item at a time", {!r}, lambda call: {})]'
TOO_MANY = 'sum(one["status"] == "in_progress" for one in call.input.todos) > 1'
KEEPS = """
    def record_tool_round(self, names):
        super().record_tool_round(names)
        return ({},) if {} else ()


def build("""
SHARED = [("todos=NudgeToVerify()", "todos=SHARED"), ("def build(", "SHARED = NudgeToVerify()\n\n\ndef build(")]
ONE_AGENT = [
    ("def build(", "MADE = []\n\n\ndef build("),
    ("    return build_agent(", "    MADE.append(build_agent("),
    ("todos=NudgeToVerify())", "todos=NudgeToVerify()))\n    return MADE[0]"),
]
ALL_OF_THE_ROUND = """distance = plan_distance(ModelRequest(self.agent.history))
        distance = 2000 if distance == 0 and len(self.agent.history[-2].content) > 1500 else distance"""
FIRST_LIST = """
    def _write(self, given):
        result = super()._write(given)
        self.first = getattr(self, "first", None) or self.todos
        return result


def build("""
SAME_AGAIN = "setattr(self, '_todos', tuple(list(self._todos)))"
WRONG = {
    # A
    "A two are enough": ("A", [("len(done) >= 3", "len(done) >= 2")], "needs_three"),
    "A exactly three": ("A", [("len(done) >= 3", "len(done) == 3")], "more_than_three"),
    "A open items count": ("A", [(' if item.status == "completed"', "")], "completed_only"),
    "A all must be done": ("A", [("len(done) >= 3", "len(self.todos) == len(done) >= 3")], "open_items_beside"),
    "A lower case only": ("A", [(".lower()", "")], "upper_or_lower_case"),
    "A nothing silences": ("A", [('"verif" in', '"no such word" in')], "a_verifying_item_silences"),
    "A plans to verify": (
        "A",
        [('"verif" in content for content in done', '"verif" in item.content.lower() for item in self.todos')],
        "only_completed_verifies",
    ),
    "A again and again": ("A", [("self.judged = self.todos\n            done", "done")], "nudges_once"),
    "A once in a life": (
        "A",
        [("self.todos is not self.judged", "not self.judged and self.todos")],
        "each_update_anew",
    ),
    "A equal is the same": ("A", [("self.todos is not self.judged", "self.todos != self.judged")], "each_update_anew"),
    "A no reminder any more": ("A", [("return super().before_model()", "return ()")], "reminder_as_before"),
    "A own words": ("A", [("SystemMessage(VERIFY_NUDGE)", 'SystemMessage("Please verify.")')], "exact_text"),
    "A two at once": ("A", [(NUDGE, "return (SystemMessage(VERIFY_NUDGE),) * 2")], "one_reminder"),
    "A stays": (
        "A",
        [("\n\ndef build(", KEEPS.format("SystemMessage(VERIFY_NUDGE)", "len(self.todos) == 3"))],
        "not_in_history",
    ),
    "A one tracker for all": ("A", SHARED, "isolated"),
    "A one agent for all": ("A", ONE_AGENT, "asks_the_model"),
    "A by the name of the tool": (
        "A",
        [
            ("if self.todos is not self.judged:", "if self.judged:"),
            ("self.judged = self.todos\n            done", "self.judged = ()\n            done"),
            ("\n\ndef build(", KEEPS.format("None", "setattr(self, 'judged', 'todo_write' in names)")),
        ],
        "refused_is_no_update",
    ),
    "A a round late": (
        "A",
        [("is not self.judged:", "is not self.judged and self.view().count:")],
        "in_the_next_request",
    ),
    "A the first list": (
        "A",
        [("for item in self.todos if", "for item in self.first if"), ("\n\ndef build(", FIRST_LIST)],
        "the_list_in_force",
    ),
    "A own test": ("A", [("== [2, 4]", "== [2, 5]")], "own_test_passes"),
    # B
    "B nothing": ("B", [(f", {HOOK}", "")], "refuses_two"),
    "B a rule has fixed words": (
        "B",
        [(HOOK, RULE.format("deny", f'call.tool.name == "todo_write" and {TOO_MANY}'))],
        "says_the_rule",
    ),
    "B asks a person": (
        "B",
        [(HOOK, RULE.format("ask", f'call.tool.name == "todo_write" and {TOO_MANY}'))],
        "asks_nobody",
    ),
    "B a matcher that raises": ("B", [(HOOK, RULE.format("deny", TOO_MANY))], "reads_the_workspace"),
    "B none is refused, too": ("B", [("len(busy) < 2", "len(busy) == 1")], "none_is_fine"),
    "B one is refused, too": ("B", [("len(busy) < 2", "len(busy) < 1")], "one_is_fine"),
    "B reads words": (
        "B",
        [('if item["status"] == "in_progress"', 'if "in_progress" in str(item)')],
        "statuses_not_words",
    ),
    "B says no and no more": ("B", [("HookAnswer(deny=error)", 'HookAnswer(deny="no")')], "says_the_rule"),
    "B names nothing": ("B", [("HookAnswer(deny=error)", 'HookAnswer(deny="one in_progress")')], "names_the_items"),
    "B names all": (
        "B",
        [("HookAnswer(deny=error)", "HookAnswer(deny='in_progress ' + call.call.arguments)")],
        "names_only_those",
    ),
    "B names fifty": (
        "B",
        [("HookAnswer(deny=error)", "HookAnswer(deny='in_progress ' + ', '.join(busy))")],
        "short_error",
    ),
    "B mends it in silence": (
        "B",
        [("HookAnswer(deny=error)", 'HookAnswer(arguments={"todos": [{"content": "wash", "status": "pending"}]})')],
        "refuses_two",
    ),
    "B raises": ("B", [("return HookAnswer(deny=error)", "raise ValueError(error)")], "decides"),
    "B writes files unasked": ("B", [(HOOK, HOOK + ', approver=lambda ask: "allow"')], "still_asks"),
    "B refuses ever after": (
        "B",
        [
            ("if len(busy) < 2:", "if len(busy) < 2 and not BEFORE:"),
            ("    named =", "    BEFORE.append(1)\n    named ="),
            (HOOK, HOOK + ") if BEFORE.clear() is None else ("),
            ("def one_in", "BEFORE = []\n\n\ndef one_in"),
        ],
        "repairs",
    ),
    "B speaks of other tools": (
        "B",
        [
            (
                "        return None\n    busy",
                '        return HookAnswer(deny="no") if call.tool.name == "glob" else None\n    busy',
            )
        ],
        "other_tools_pass",
    ),
    "B a hook that breaks its contract": ("B", [("=one_in_progress)", "=one_in_progress, Stop=len)")], "hook_failed"),
    "B ends after five rounds": ("B", [(HOOK, HOOK + ", max_rounds=5")], "comes_to_an_end"),
    "B no list at all": ("B", [("build_agent(P05", "build_agent(__import__('labkit').P04")], "tools_as_before"),
    # C
    "C by rounds": ("C", [("todos=tracker)", ")"), ("= FarAway()", "= FarAway\n    tracker.x = 1")], "not_by_rounds"),
    "C always when far": ("C", [("self.mark = distance\n", "pass\n")], "waits_after_it"),
    "C only once": ("C", [("self.mark = distance\n", "self.mark = 10**9\n")], "again_when_farther"),
    "C half the budget": ("C", [("< PLAN_BUDGET", "< PLAN_BUDGET / 2")], "not_by_rounds"),
    "C a little early": ("C", [("< PLAN_BUDGET", "< PLAN_BUDGET - 300")], "not_too_early"),
    "C twice the budget": ("C", [("< PLAN_BUDGET", "< PLAN_BUDGET * 1.15")], "not_too_late"),
    "C without a plan": (
        "C",
        [("if distance is None or", "distance = PLAN_BUDGET if distance is None else distance\n        if")],
        "no_plan_no_reminder",
    ),
    "C the mark stays": ("C", [("self.todos, 0", "self.todos, self.mark")], "update_begins_anew"),
    "C a refusal is a plan": (
        "C",
        [
            (
                "\n\ndef build(",
                KEEPS.format(
                    "None",
                    "'todo_write' in names"
                    " and setattr(self, 'mark', plan_distance(ModelRequest(self.agent.history)) or 0)",
                ),
            )
        ],
        "refused_is_no_plan",
    ),
    "C from the next round on": (
        "C",
        [("self.todos, 0", "self.todos, plan_distance(ModelRequest(self.agent.history)) or 0")],
        "results_in_one_message",
    ),
    "C all of the round": (
        "C",
        [("distance = plan_distance(ModelRequest(self.agent.history))", ALL_OF_THE_ROUND)],
        "only_what_is_behind",
    ),
    "C never": ("C", [("< PLAN_BUDGET", "< PLAN_BUDGET * 99")], "reminds_when_far"),
    "C stays": (
        "C",
        [("\n\ndef build(", KEEPS.format("SystemMessage(TODO_STALE_REMINDER)", "self.mark"))],
        "not_in_history",
    ),
    # of any
    "an equal list": ("A", [("\n\ndef build(", KEEPS.format("None", SAME_AGAIN))], "same_object"),
    "a result that nobody asked for": (
        "A",
        [("\n\ndef build(", KEEPS.format("__import__('labkit').ToolMessage('x', 'y')", "True"))],
        "answered_once",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_change_is_named_by_what_it_breaks(name):
    """The report and the check name the property that the wrong answer breaks, and say it in a sentence."""
    change, edits, broken = WRONG[name]
    mine = solved(change, *edits) if broken == "own_test_passes" else without_tests(change, *edits)
    report = acceptance(**mine)
    assert broken in report.failed, report
    assert not report.ok
    verdict = check("12.1", mine)
    assert (verdict.outcome, verdict.failed) == ("not_yet", broken), verdict
    assert "\n" not in repr(verdict)


@pytest.mark.parametrize("change", "ABC")
def test_three_wrong_answers_of_each_change_are_told_apart(change):
    """For each change there are at least three wrong answers that break different properties."""
    assert len({broken for letter, _, broken in WRONG.values() if letter == change}) >= 3


def test_the_agent_without_a_change_keeps_the_invariants():
    """The control: the plain agent breaks no invariant, and passes for none of the changes."""
    for change in "ABCD":
        correct, invariants, *_ = acceptance(plain, change).lines
        assert (correct.outcome, invariants.outcome) == ("not yet", "ok")


def test_a_history_that_is_changed_later_is_seen():
    """What a request held is kept as it was, so rewriting the history afterwards breaks the invariant."""

    def build(model, workspace):
        agent = plain(model, workspace)

        class Rewrites:
            def begin_run(self): ...

            def before_model(self):
                if len(agent._history) > 3:
                    agent._history[0] = SystemMessage("never said")
                return ()

            def record_tool_round(self, names):
                return ()

            def view(self): ...

        agent._observers += (Rewrites(),)
        return agent

    assert "append_only" in acceptance(build, "B").failed


# ---- nothing stops it ----

HOSTILE = {
    "endless loop": "while True: pass",
    "endless loop in a bare except": "while True:\n   try:\n    while True: pass\n   except: pass",
    "recursion": "return build(model, workspace)",
    "raise": "raise KeyError('x')",
    "raise BaseException": "raise BaseException('out')",
    "raise with words that loop": "class Bad(Exception):\n    def __str__(self):\n      while True: pass\n  raise Bad",
    "exit": "import sys; sys.exit(3)",
    "missing import": "import a_package_that_is_not_there",
    "input": "input('?')",
    "flood of output": "print('x' * 10**7); return None",
    "wrong type": "return 7",
    "the package changed": "import labkit.todos; labkit.todos.STALE_TOOL_ROUNDS = 1; return plain(model, workspace)",
    "folder left": "import os; os.chdir('/'); raise ValueError",
    "a liar": "class Liar:\n    __class__ = property(lambda self: 1 / 0)\n  return Liar()",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_gets_a_report(name, capsys):
    """Whatever `build` does, there is a report of five short lines; nothing is printed and the folder stays."""
    names = {"plain": plain}
    exec(f"def build(model, workspace):\n  {HOSTILE[name]}", names)
    before = os.getcwd()
    report = acceptance(names["build"], "A", seconds=2)
    assert not report.ok
    assert len(repr(report).splitlines()) == 5
    assert len(repr(report)) < 900
    assert os.getcwd() == before
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tests_get_a_line(name):
    """Whatever a test does, it has its line, and the tests behind it are run."""
    names = {"plain": plain}
    exec(f"def test_mine(build):\n  model = workspace = None\n  {HOSTILE[name]}", names)
    lines = run_tests([names["test_mine"], lambda build: None], plain, seconds=2).splitlines()
    assert lines[0].startswith("test_mine: ")
    assert lines[1].endswith(": passes")


@pytest.mark.parametrize("given", [None, 7, "text", {}, type, [], object()])
def test_any_object_gets_a_report(given):
    """A build, a change or tests of a wrong kind are never an exception and never right."""
    assert not acceptance(given, "A").ok
    assert not acceptance(plain, given).ok
    assert not acceptance(plain, "A", given).ok
    assert run_tests(given, plain)


# ---- the report ----


def test_an_exported_report_is_complete(tmp_path):
    """Title, change, the four lines of the rubric, the two runs that were measured, evidence, limits."""
    path = tmp_path / "my report.md"
    report = acceptance(**solved("B"))
    told = report.export(path, **DEFENCE)
    text = path.read_text(encoding="utf-8")
    assert told == f"my report.md: {len(text.splitlines())} lines, Change B: one in_progress, as a policy"
    assert text.startswith(f"# {DEFENCE['title']}\n\nChange B: one in_progress, as a policy.\n")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == [
        "Rubric",
        "Measured by the package",
        "Evidence",
        "Limits",
        "What this report does not show",
    ]
    rows = re.findall(r"^\| (?:correct|invariants kept|evidence|honest limits) \| ([^|]*) \|", text, re.MULTILINE)
    assert rows == ["ok", "ok", "for a reader", "for a reader"]
    assert report.measured in text
    assert DEFENCE["evidence"] in text
    assert DEFENCE["limits"] in text


def test_what_is_not_written_is_named_in_the_report(tmp_path):
    """A report can be exported at any time; texts that are missing or lack their form say so."""
    path = tmp_path / "r.md"
    acceptance(**stub_of("12.1")).export(path, **stub_of("12.2"))
    text = path.read_text(encoding="utf-8")
    assert text.count("(not written yet)") == 4
    acceptance(plain, "A").export(path, title="x", evidence="It works.", limits="None.")
    assert "| evidence | not yet | the evidence should have at least 12 words |" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("where", ["no/such/folder/r.md", "", None, 7.5, "nul\0"])
def test_a_place_that_cannot_be_written_is_told(tmp_path, monkeypatch, where):
    """Where no file can be written, one line says so, and nothing is raised."""
    monkeypatch.chdir(tmp_path)
    assert "nothing was written" in acceptance(**stub_of("12.1")).export(where)
    assert list(tmp_path.iterdir()) == []


def test_words_of_a_student_do_not_break_the_file(tmp_path):
    """A bar, a line break in the title, Chinese and a lone surrogate are written as UTF-8."""
    path = tmp_path / "r.md"
    acceptance(plain, "A").export(path, title="a\nb | c", evidence="证据 \ud800", limits="x")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# a b | c\n")
    assert "证据 \ufffd" in text


def test_the_measurement_shows_the_change_beside_the_control():
    """The two runs that a report measures differ for A, B and C: a number to quote, and its control."""
    for change in "ABC":
        _, without, with_it = acceptance(**solved(change)).measured.splitlines()
        assert without.removeprefix("without").split() != with_it.removeprefix("with the change").split()


# ---- what the parts are ----


def test_a_trace_says_what_each_request_held():
    """trace() runs a script in a fresh folder and keeps guidance, lists and results."""
    seen = trace(plain, [update(), *[read()] * 3, say("done")])
    assert seen.requests_with(TODO_STALE_REMINDER) == [5]
    assert seen.timeline == "00001"
    assert [one.result.error for one in seen.settled] == [None] * 4
    assert len(seen.lists) == 6


def test_starter_tests_tell_the_change_from_the_control():
    """The starter tests of the notebook fail on the plain agent and pass on the worked solution, for A, B and C."""
    cells = nbformat.read(SECOND.parents[1] / "12_capstone.ipynb", as_version=4).cells
    names = {}
    for cell in cells:
        if cell.id in ("imports", "starter-a", "starter-b", "starter-c"):
            exec(cell.source, names)
    for change in "ABC":
        tests = [names[name] for name in names if name.startswith(f"test_{change.lower()}_")]
        assert len(tests) >= 2
        assert "fails" in run_tests(tests, plain)
        assert "fails" not in run_tests(tests, solved(change)["build"])


def test_the_capstone_shows_only_what_it_names():
    """What the notebook imports from here is there, and the hidden traces are not among it."""
    assert all(hasattr(capstone, name) for name in capstone.__all__)
    assert not {part.__name__ for parts in nb12.CHANGES.values() for part in parts} & set(capstone.__all__)
