"""Inputs that broke other notebooks, by their number: buttons that fail, widgets that are not there, input()."""

import subprocess
import sys
import threading

import pytest

pytest.importorskip("ipywidgets", reason="the stepper needs the `lab` extra: python lab.py")
from helpers import read

from labkit import P05, ScriptedModelClient, build_agent, call, say
from labkit.classroom.stepper import Stepper
from labkit.frames import frames_of


def live(folder, *script, **parts):
    model = ScriptedModelClient(script)
    return Stepper.live(build_agent(P05, model, workspace=folder, **parts), "go"), model


class Unspeakable(Exception):
    """Not even its words can be had."""

    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (None, "ScriptError: the script has 0 replies"),
        (ValueError("<b>bad</b>"), "ValueError: &lt;b&gt;bad&lt;/b&gt;"),
        (Unspeakable(), "Unspeakable"),
        (lambda request: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda request: 7, "ScriptError: reply 1 of the script is a int"),
    ],
)
def test_d_e2_an_error_in_a_press_shows_in_the_widget(folder, capsys, entry, shown):
    """Whatever a press raises is shown in the widget and kept, the buttons stay usable, and nothing was printed."""
    stepper, model = live(folder, *([] if entry is None else [entry, say("done")]))
    stepper.next.click()
    assert shown in stepper.line.value
    assert isinstance(stepper.error, Exception)
    assert not stepper.next.disabled
    stepper.next.click()
    assert len(model.requests) == 2
    assert capsys.readouterr() == ("", "")
    if entry is not None:
        assert stepper.error is None
        assert stepper.result.text == "done"


def test_d_e2_clicks_during_a_step_do_one_step(folder):
    """Clicks from another thread and from inside the step, while a request is under way, do nothing."""
    inside, on = threading.Event(), threading.Event()
    errors = []

    def slow(request):
        stepper.next.click()  # as a second message in the same thread would
        errors.append(stepper.error)
        inside.set()
        assert on.wait(60)
        return read()

    stepper, model = live(folder, slow, read(), say("done"))
    worker = threading.Thread(target=stepper.next.click)
    worker.start()
    assert inside.wait(60)
    for button in (stepper.next, stepper.next, stepper.first, stepper.approve):
        button.click()
        errors.append(stepper.error)
    on.set()
    worker.join(60)
    assert errors == [None] * 5
    assert len(model.requests) == len(stepper.rounds) == 1
    stepper.next.click()
    assert len(model.requests) == 2


def test_d_e3_everything_is_there_without_widgets(folder):
    """With no front end that draws widgets, `step()` and the text give the same rounds as the buttons."""
    stepper, _ = live(folder, read(), call("todo_write", todos=[]), say("done"))
    stepped = [repr(stepper.step()) for _ in range(3)]
    assert stepped == list(map(repr, frames_of(stepper.result)))
    assert "\n\n".join(stepped) == repr(stepper)


def test_d_e3_frames_need_no_widgets():
    """Frames, the text twin of every stepper, can be had where ipywidgets and IPython are not installed."""
    code = (
        "import sys; sys.modules['ipywidgets'] = sys.modules['IPython'] = None; "
        "from labkit import P01, ScriptedModelClient, build_agent, say; from labkit.frames import frames_of; "
        "print(frames_of(build_agent(P01, ScriptedModelClient([say('hi')])).run('go'))[0].title)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stdout == "Round 1: an answer in text\n", done.stderr


def test_d_e4_nothing_waits_for_input(folder, monkeypatch):
    """With nobody to ask a run ends by itself with the answer deny; a stepper shows the question and does not block."""
    monkeypatch.setattr("builtins.input", lambda *words: pytest.fail("input() was called"))
    write = call("write_file", path="new.txt", content="x")
    result = build_agent(P05, ScriptedModelClient([write, say("done")]), workspace=folder).run("go")
    assert result.rounds[0].settled[0].decision == "deny"
    stepper, _ = live(folder, write, say("done"))
    stepper.next.click()
    stepper.next.click()
    assert stepper.asking is not None
    scripted, _ = live(folder, write, say("done"), approver=lambda ask: "allow")
    scripted.step()
    scripted.step()
    assert scripted.result.text == "done"
    assert not any(name in repr(scripted) for name in ("input(", "getpass"))
