"""The stepper in a real browser: drawing, clicking, typing, the clock of play; what Python alone can't see."""

import os
from pathlib import Path

import nbformat
import pytest

if not os.environ.get("CI"):  # there a missing playwright is an error, as a missing browser is
    pytest.importorskip("playwright.sync_api", reason="the browser tests need the `test` extra: python lab.py test")
from playwright.sync_api import expect

from labkit.classroom.stepper import BESIDE
from labkit.frames import frames_of
from labkit.todos import TODO_STALE_REMINDER

pytestmark = pytest.mark.browser
expect.set_options(timeout=90_000)  # how long a wait may be, not how long it is: machines are slow at times

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

SETUP = """\
from pathlib import Path
from time import sleep

from labkit import P05, ScriptedModelClient, build_agent, call, say
from labkit.classroom.stepper import Stepper, side_by_side

folder = Path({folder!r})
(folder / "a.txt").write_text("tea costs $5, cake costs $6\\n", encoding="utf-8")
read = call("read_file", path="a.txt")


def write(name):
    return call("write_file", path=name, content="<b>x</b>")


def plan(*statuses):
    return call("todo_write", todos=[{{"content": f"item {{i}}", "status": word}} for i, word in enumerate(statuses)])


def agent(*script, **parts):
    return build_agent(P05, ScriptedModelClient(script), workspace=folder, **parts)


def replayed():
    script = [plan("in_progress", "pending"), read, read, read, plan("completed"), say("done")]
    return agent(*script).run("Plan, then read.")
"""


@pytest.fixture
def setup(tmp_path):
    """The first cell of a notebook, and what it defines, here in Python."""
    source = SETUP.format(folder=str(tmp_path))
    names = {}
    exec(source, names)
    return source, names


class Shown:
    """One stepper on a page."""

    def __init__(self, page, nth=0):
        self.page = page
        self.pane = page.locator(".jp-NotebookPanel .lab-pane").nth(nth)
        self.status = page.locator(".jp-NotebookPanel .lab-status").nth(nth)

    def click(self, word):
        self.page.get_by_role("button", name=word, exact=True).click()

    def shows(self, frame):
        """Wait until the pane holds the words of this frame, and no others."""
        expect(self.pane).to_have_text(repr(frame), use_inner_text=True)


def test_clicks_on_a_replay_show_the_frames_that_python_has(open_notebook, setup):
    """next, back, last, first, the slider's keys and play go where the words say, and each place shows its frame."""
    source, names = setup
    frames = frames_of(names["replayed"]())
    book = open_notebook("replay", [source, "Stepper(replayed())"])
    shown = Shown(book.page)
    shown.shows(frames[0])
    for word, at in [
        ("next", 1),
        ("next", 2),
        ("back", 1),
        ("last", 5),
        ("next", 5),
        ("first", 0),
        ("back", 0),
        ("next", 1),
    ]:
        shown.click(word)
        shown.shows(frames[at])
        expect(shown.status).to_contain_text(f"Round {at + 1} of 6")
    handle = book.page.locator(".noUi-handle")
    handle.focus()
    handle.press("ArrowRight")
    shown.shows(frames[2])
    handle.press("End")
    shown.shows(frames[5])
    shown.click("first")
    shown.click("play")
    book.page.get_by_role("button", name="pause", exact=True).wait_for()
    shown.shows(frames[5])
    book.page.get_by_role("button", name="play", exact=True).wait_for()  # it has stopped by itself, on the last round
    shown.shows(frames[5])
    shown.click("back")
    book.page.locator(".widget-dropdown select").nth(0).select_option("text: projector")
    book.page.locator(".widget-dropdown select").nth(1).select_option(BESIDE)
    reminder = shown.pane.locator("tr", has_text=TODO_STALE_REMINDER)
    expect(reminder.locator("td").nth(1)).to_have_text("")
    expect(reminder.locator("td").nth(2)).to_contain_text("in the request only")
    book.shot("replay_beside_projector")


def test_a_live_run_by_clicks(open_notebook, setup, tmp_path):
    """Each next is one request, also when it was clicked twice; approve runs the call, deny does not; errors show."""
    source, names = setup
    wait = f"""\
def slow(request):
    while not Path({str(tmp_path)!r}, "go").exists():
        sleep(0.02)
    return read

model_agent = agent(slow, write("yes.txt"), write("no.txt"))
live = Stepper.live(model_agent, "Write.")
live"""
    book = open_notebook("live", [source, wait])
    shown = Shown(book.page)
    expect(shown.status).to_contain_text("Press next")
    next_button = book.page.get_by_role("button", name="next", exact=True)
    next_button.dblclick()
    next_button.click()  # all of these while the first request is under way
    (tmp_path / "go").write_text("", encoding="utf-8")
    expect(shown.status).to_contain_text("Round 1 of 1")
    shown.click("first")  # a kernel takes messages in their order, so the clicks before this one are through
    book.page.locator(".widget-dropdown select").nth(0).select_option("text: large")
    expect(shown.pane).to_have_attribute(
        "style", "font-size: 140%; line-height: 1.4; white-space: normal; overflow-wrap: anywhere"
    )
    expect(shown.status).to_contain_text("Round 1 of 1")

    shown.click("next")
    expect(shown.status).to_contain_text("A question waits: approve or deny? write_file")
    book.shot("live_question")
    assert not (tmp_path / "yes.txt").exists()
    shown.click("approve")
    expect(shown.status).to_contain_text("Round 2 of 2")
    assert (tmp_path / "yes.txt").read_text(encoding="utf-8") == "<b>x</b>"
    shown.click("next")
    expect(shown.status).to_contain_text("A question waits")
    shown.click("deny")
    expect(shown.status).to_contain_text("Round 3 of 3")
    assert not (tmp_path / "no.txt").exists()

    answers = iter(["allow", "deny"])
    same = names["agent"](
        names["read"],
        names["write"]("yes.txt"),
        names["write"]("no.txt"),
        approver=lambda _: next(answers),
        max_rounds=3,
    )
    frames = frames_of(same.run("Write.").rounds[:2])
    shown.click("next")
    expect(shown.status).to_contain_text("ScriptError: the script has 3 replies")
    book.shot("live_error")
    shown.click("back")
    shown.shows(frames[1])
    shown.click("first")
    shown.shows(frames[0])


BUSY = """code => {
    window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}, false);
}"""


def test_clicks_that_waited_for_a_busy_kernel_are_one(open_notebook, setup, tmp_path):
    """Clicks made before the answer to the first was on the page are one press, however late the kernel reads them."""
    source, _ = setup
    late = """\
class Late(Stepper):
    def _draw(self):
        super()._draw()
        sleep(0.3)  # the page has the answer, and the kernel has yet to come to the next click

Late.live(agent(*[read] * 5, say("done")), "Read.")"""
    book = open_notebook("busy", [source, late])
    shown = Shown(book.page)
    expect(shown.status).to_contain_text("Press next")
    for rounds in (1, 2):
        free = tmp_path / f"free{rounds}"
        book.page.evaluate(BUSY, f"while not Path({str(free)!r}).exists(): sleep(0.02)")
        for _ in range(3):
            shown.click("next")
        free.write_text("", encoding="utf-8")
        expect(shown.status).to_contain_text(f"Round {rounds} of {rounds}")
        shown.click("first")  # the clicks before this one are through
        expect(shown.status).to_contain_text(f"Round 1 of {rounds}")
        shown.click("last")
        expect(shown.status).to_contain_text(f"Round {rounds} of {rounds}, the latest")


def test_a_page_loaded_anew_during_a_request_goes_on(open_notebook, setup, tmp_path):
    """The answer that came while no page was there is shown by the next page, whose buttons work as before."""
    source, _ = setup
    wait = f"""\
def slow(request):
    Path({str(tmp_path)!r}, "asked").touch()
    while not Path({str(tmp_path)!r}, "go").exists():
        sleep(0.02)
    return read

Stepper.live(agent(slow, read, say("done")), "Read.")"""
    book = open_notebook("anew", [source, wait])
    shown = Shown(book.page)
    expect(shown.status).to_contain_text("Press next")
    book.save()
    shown.click("next")
    for _ in range(6000):
        if (tmp_path / "asked").exists():
            break
        book.page.wait_for_timeout(10)
    assert (tmp_path / "asked").exists()
    book.page.reload()
    (tmp_path / "go").touch()
    expect(shown.status).to_contain_text("Round 1 of 1")
    shown.click("next")
    expect(shown.status).to_contain_text("Round 2 of 2")
    book.shot("loaded_anew")


def test_a_live_run_by_the_keyboard_alone(open_notebook, setup, tmp_path):
    """From next on, Tab, Enter and Space reach and work every control, and no press takes the focus away."""
    source, _ = setup
    book = open_notebook("keyboard", [source, 'Stepper.live(agent(write("k.txt"), say("done")), "Write.")'])
    shown = Shown(book.page)
    expect(shown.status).to_contain_text("Press next")
    book.page.get_by_role("button", name="next", exact=True).focus()
    keys = book.page.keyboard
    focused = "() => document.activeElement.textContent || document.activeElement.className"
    keys.press("Enter")
    expect(shown.status).to_contain_text("A question waits")
    reached = []
    while "approve" not in reached and len(reached) < 9:
        keys.press("Tab")
        reached.append(book.page.evaluate(focused))
    assert reached[:2] == ["last", "play"]
    assert "noUi-handle" in reached[2]
    keys.press("Space")
    expect(shown.status).to_contain_text("Round 1 of 1")
    assert (tmp_path / "k.txt").exists()
    assert book.page.evaluate(focused) == "approve"
    for _ in range(10):
        if book.page.evaluate(focused) == "next":
            break
        keys.press("Shift+Tab")
    keys.press("Enter")
    expect(shown.status).to_contain_text("Round 2 of 2, the last")
    assert book.page.evaluate(focused) == "next"
    book.shot("keyboard")


def test_three_side_by_side_in_a_narrow_window(open_notebook, setup):
    """One next moves all three, each shows its own frames, and nothing is cut off or wider than a narrow window."""
    source, names = setup
    cell = """\
runs = [replayed(), agent(read, say("x" * 400)).run("Read."), agent(say("no list")).run("Say.")]
side_by_side(Stepper(runs[0], title="one"), Stepper(runs[1], title="two"), Stepper(runs[2], title="three"))"""
    exec(cell, names)
    frames = [frames_of(run) for run in names["runs"]]
    book = open_notebook("beside", [source, cell], width=1600)
    all_shown = [Shown(book.page, nth) for nth in range(3)]
    for shown, its in zip(all_shown, frames, strict=True):
        shown.shows(its[0])
    all_shown[0].click("next, all")
    for shown, its in zip(all_shown, frames, strict=True):
        shown.shows(its[min(1, len(its) - 1)])
    tops = [shown.pane.bounding_box()["y"] for shown in all_shown]
    assert max(tops) - min(tops) < 40
    book.shot("beside_wide")
    book.page.set_viewport_size({"width": 620, "height": 1000})
    expect(book.page.get_by_role("button", name="next, all")).to_be_visible()
    book.page.wait_for_function("document.querySelectorAll('.lab-pane')[0].clientWidth < 300")  # laid out anew
    wider = "e => [e.scrollWidth - e.clientWidth, e.clientWidth]"
    box = book.page.locator(".jp-NotebookPanel .jp-OutputArea-output").last
    over, width = box.evaluate(wider)
    assert over <= 1
    assert all(shown.pane.evaluate(wider)[0] <= 1 for shown in all_shown)
    assert all(shown.pane.evaluate(wider)[1] > 200 for shown in all_shown)
    outside = """e => [...e.querySelectorAll('button, select')].filter(one => one.offsetParent
        && one.getBoundingClientRect().right > e.getBoundingClientRect().right + 1).map(one => one.textContent)"""
    assert box.evaluate(outside) == []
    book.shot("beside_narrow")
    assert width > 200


def test_a_kernel_restarted_while_the_stepper_is_shown(open_notebook, setup):
    """What is shown stays readable after a restart; running the cells again gives a stepper that works."""
    source, names = setup
    frames = frames_of(names["replayed"]())
    book = open_notebook("restart", [source, "Stepper(replayed())"])
    shown = Shown(book.page)
    shown.click("next")
    shown.shows(frames[1])
    book.restart_kernel()
    shown.shows(frames[1])
    book.shot("after_a_restart")
    book.run_all()
    shown.shows(frames[0])
    shown.click("next")
    shown.shows(frames[1])


def texts(book):
    """The text of each code cell's outputs, streams joined."""
    found = []
    for cell in book.cells:
        if cell.cell_type == "code":
            outputs = [
                o.get("text") or o.get("data", {}).get("text/plain") or o.get("evalue", "") for o in cell.outputs
            ]
            found.append((cell.id, "".join("".join(text) for text in outputs)))
    return found


@pytest.mark.parametrize("name", ["07_todo_write", "08_fourth_request"])
def test_a_notebook_run_in_the_browser_gives_its_stored_texts(open_notebook, name):
    """Opened in JupyterLab and run from the first cell to the last, a notebook says what its file says."""
    path = NOTEBOOKS / f"{name}.ipynb"
    book = open_notebook(name, path)
    book.page.locator(".jp-NotebookPanel .lab-pane").first.wait_for(state="attached")
    assert texts(book.content()) == texts(nbformat.read(path, as_version=4))
