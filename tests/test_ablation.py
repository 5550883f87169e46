"""The ablation and the judging of a run: what they count, with a model that is scripted and may be wrong."""

from types import SimpleNamespace

import pytest
from helpers import Lab, plan, read

from labkit import ModelError, ScriptedModelClient, SystemMessage, call, say
from labkit.classroom import ablation as measure
from labkit.classroom.planning import (
    INVARIANTS,
    REPAIR,
    TASKS,
    attempt,
    judged,
    outcome,
    prompt_of,
    requests_at_most,
    tokens_at_most,
)

STEPS = ("buy milk", "bake bread", "wash up")


class Copier:
    """A model that copies a.txt to b.txt and claims everything else."""

    def complete(self, request):
        """One call for the first task, and words for each other."""
        said = request.messages[-1].content
        if "b.txt" in said and "wrote" not in said:
            return ScriptedModelClient([call("write_file", path="b.txt", content="hello\n")]).complete(request)
        return say("I did it.")


def test_success_is_what_is_in_the_files_and_not_what_was_said():
    """A task counts as done when its files are as asked; a model that only claims it has done nothing."""
    trials = measure.ablation(Copier())
    done = [(trial.arm, trial.task.prompt[:4], trial.success) for trial in trials]
    assert done == [(arm, task.prompt[:4], task is measure.TASKS[0]) for task in measure.TASKS for arm in measure.ARMS]
    rows = {row[0]: row[1:] for row in measure.summary(trials).rows}
    assert {name: row[:2] for name, row in rows.items()} == dict.fromkeys(measure.ARMS, ("1/4", "4/4"))


def test_the_arms_differ_in_the_list_and_the_reminder_alone():
    """No list: no todo tool. The list alone: no reminder. Both: the reminder is in the fourth request."""
    seen = {}
    task = measure.Task("go", {"a.txt": "x"}, {"a.txt": "x"})
    for name, arm in measure.ARMS.items():
        model = ScriptedModelClient([read(), read(), read(), say("done")])
        trial = measure._trial(name, arm, task, model, 6)
        last = model.requests[-1]
        tools = [tool.name for tool in last.tools]
        seen[name] = ("todo_write" in tools, isinstance(last.messages[-1], SystemMessage), trial.success)
    assert seen == {
        "no list": (False, False, True),
        "list": (True, False, True),
        "list and reminder": (True, True, True),
    }


def test_a_client_that_fails_fails_the_task_and_not_the_measurement():
    """An error of the client counts as not done, and the rest is still measured."""

    class Broken:
        def complete(self, request):
            raise ModelError("no answer")

    trials = measure.ablation(Broken())
    assert len(trials) == len(measure.TASKS) * len(measure.ARMS)
    assert all((not trial.success, trial.error) == (True, "no answer") for trial in trials)
    assert all(row[-1] == len(measure.TASKS) for row in measure.summary(trials).rows)


def test_only_files_are_approved():
    """Writing files gets a yes, the shell does not."""
    answers = [measure.approve_files(SimpleNamespace(tool=SimpleNamespace(effect=e))) for e in ("write", "execute")]
    assert answers == ["allow", "deny"]


def test_the_command_without_a_model_says_what_is_missing(monkeypatch, capsys):
    """With nothing configured the command names the settings and ends with code 2."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert measure.main([]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err


# ---- the planning tasks ----


def test_an_attempt_is_repaired_until_a_list_is_accepted():
    """Words get a sentence back, a refused call its own refusal; after an accepted list nothing more is asked."""
    model = ScriptedModelClient([say("Sure! 1. milk"), call("todo_write", "{broken"), plan(*STEPS), say("never")])
    tried = attempt(model, STEPS, repairs=5)
    assert (tried.requests, tried.said, tried.as_asked) == (3, 3, True)
    assert [message.content for message in model.requests[1].messages[-1:]] == [REPAIR]
    assert "[invalid_json]" in model.requests[2].messages[-1].content


@pytest.mark.parametrize(("repairs", "requests"), [(0, 1), (1, 2), (2, 3)])
def test_repairs_have_a_bound(repairs, requests):
    """At most so many more requests are made as there are repairs, and that is what the cap is reckoned from."""
    tried = attempt(ScriptedModelClient([say("no")] * 9), STEPS, repairs=repairs)
    assert (tried.requests, tried.todos, tried.as_asked) == (requests, (), False)
    assert requests_at_most([STEPS] * 8, repairs=repairs) == 8 * requests


def test_form_and_meaning_are_counted_apart():
    """An accepted list that names other things than the steps has the form and not the meaning."""
    tried = [
        attempt(ScriptedModelClient([plan("Buy milk!", "BAKE  bread", "wash-up")]), STEPS),
        attempt(ScriptedModelClient([plan("buy milk, bake bread, wash up")]), STEPS),
        attempt(ScriptedModelClient([plan("todos", "todos", "todos")]), STEPS),
        attempt(ScriptedModelClient([say("no")]), STEPS),
    ]
    assert [(bool(one.todos), one.said, one.as_asked) for one in tried] == [
        (True, 3, True),
        (True, 3, False),
        (True, 0, False),
        (False, 0, False),
    ]
    assert outcome({"grammar": tried}).rows == (("grammar", "3/4", "1/4", "6/12", 4),)


def test_there_are_eight_tasks_of_three_steps():
    """The tasks are eight, each of three different steps, each named in its prompt."""
    assert len({prompt_of(steps) for steps in TASKS}) == 8
    assert all(len(set(steps)) == 3 and all(step in prompt_of(steps) for step in steps) for steps in TASKS)


def test_the_estimate_is_an_upper_bound_in_plain_arithmetic():
    """Four characters to a token, every reply as long as it may be."""
    assert tokens_at_most(8, prompt_characters=2400, reply_tokens=256) == 8 * (600 + 256)


# ---- the invariants ----


def test_the_invariants_hold_for_a_run_with_everything_in_it(folder):
    """A run with refusals, several calls at once, and a reminder keeps all of them."""
    script = [plan("a"), read(), [read(), plan(" ")], read(), read(), read(), plan("a", "b"), say("done")]
    result = Lab(folder, script).result
    assert [row[1] for row in judged(result).rows] == ["yes"] * len(INVARIANTS)


def broken(result, **changes):
    """The run with something changed that the loop would never do."""
    rounds = tuple(
        this._replace(**{k: v(this) for k, v in changes.items() if k != "history"}) for this in result.rounds
    )
    return result._replace(rounds=rounds, history=changes.get("history", result.history))


def test_each_invariant_can_fail(folder):
    """Each of them says NO to a run that breaks it, and to that only."""
    result = Lab(folder, [plan("a"), read(), read(), read(), say("done")]).result
    history = tuple(result.history)
    last = result.rounds[-1].request
    reminder = last.messages[-1]
    twice = last._replace(messages=(*last.messages, reminder))
    runs = {
        "every call answered once": broken(result, history=history[:2] + history[3:]),
        "one reminder at most": broken(result, request=lambda this: twice),
        "history clean": broken(result, history=(*history, reminder)),
        "snapshot is last accepted": broken(result, after=lambda this: SimpleNamespace(todos=())),
    }
    for name, run in runs.items():
        assert [row[0] for row in judged(run).rows if row[1] == "NO"] == [name]
