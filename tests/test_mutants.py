"""Mutants: broken agents for students' tests. Each is short, breaks one thing, and is found by the reference tests."""

import ast

import pytest

from labkit.classroom import exercises
from labkit.classroom.checks import broken, nb04, nb07, nb08
from labkit.classroom.checks.common import NotYet
from labkit.classroom.exercises import check, made, mutant_words, text_of

SETS = {"04.4": nb04.LOOP_MUTANTS, "07.5": nb07.LIST_MUTANTS, "08.5": nb08.REMINDER_MUTANTS}
OF = {name: exercise for exercise, names in SETS.items() for name in names}
each_mutant = pytest.mark.parametrize("name", broken.names())


def reference(exercise):
    """The tests of the solution."""
    return made(exercise, text_of(exercise)["solution"])


def test_there_are_enough_mutants_and_each_has_its_exercise():
    """At least twelve; each belongs to exactly one exercise."""
    assert len(broken.names()) >= 12
    assert sorted(OF) == sorted(sum(SETS.values(), ())) == sorted(broken.names())


@each_mutant
def test_a_mutant_is_short_and_says_what_is_wrong(name):
    """At most 40 lines, a first sentence, one class that stands on the package's own; and words for the student."""
    source = (broken.MUTANTS / f"{name}.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 40
    assert ast.get_docstring(ast.parse(source)).endswith(".")
    assert len({"Tracker", "Loop", "Registry"} & set(broken.parts_of(name))) == 1
    assert mutant_words()[name].startswith(("it ", "its ", "two "))


@each_mutant
def test_a_mutant_dies_of_one_property(name):
    """One of the reference tests of its exercise finds it, and not all of them do: it is broken in one way."""
    alive = [broken.survives(name, test) for test in reference(OF[name])]
    assert True in alive
    assert False in alive


@pytest.mark.parametrize("exercise", SETS)
def test_the_true_agent_passes_the_reference_tests(exercise):
    """What the tests find is the mutant, not the agent."""
    assert all(broken.survives(None, test) for test in reference(exercise))


@pytest.mark.parametrize("exercise", SETS)
def test_survivors_are_counted_and_one_is_told_in_words(exercise):
    """With one test alone the reference finds fewer; the line counts them and says what one that lives does wrong."""
    tests = reference(exercise)[:1]
    with pytest.raises(NotYet) as caught:
        exercises.check_of(exercise)(tests)
    facts = caught.value.facts
    assert int(facts["died"]) < int(facts["all"]) == len(SETS[exercise])
    line = repr(check(exercise, tests))
    assert f"{facts['died']} of {facts['all']}" in line
    assert line.endswith(mutant_words()[facts["mutant"]])


def test_words_for_mutants_that_are_gone_are_gone_too():
    """The texts name the mutants that there are."""
    assert sorted(mutant_words()) == sorted(broken.names())
