"""Figures and the comparison table: what is measured, what words stand beside a picture, what a picture may touch."""

import base64
import html
import json
import re
import subprocess
import sys

import pytest

from labkit import P05, HookAnswer, Hooks, ScriptedModelClient, TodoTracker, ToolResult, build_agent, call, say
from labkit.classroom import figures
from labkit.classroom.compare import DESIGNS, comparison, in_each, run_in, ten_requests
from labkit.classroom.figures import (
    goal_distance,
    plan_distance,
    plan_distance_figure,
    reminders_in,
    request_size,
    request_size_figure,
    timeline,
    timeline_figure,
    wire_size,
)
from labkit.frames import frames_of

READ = call("read_file", path="a.txt")


def update(*contents):
    return call("todo_write", todos=[{"content": content, "status": "pending"} for content in contents])


@pytest.fixture
def run(tmp_path):
    """A function that runs a script in P05 with a file to read."""
    (tmp_path / "a.txt").write_text("line\n" * 9, encoding="utf-8")

    def run(*script, **parts):
        agent = build_agent(P05, ScriptedModelClient([*script, say("done")]), workspace=tmp_path, **parts)
        return agent.run("Do it.")

    return run


def distances(result):
    return [plan_distance(one.request) for one in result.rounds]


def sizes(result, start, end=None):
    return sum(wire_size(message) for message in result.history[start:end])


# ---- what is measured ----


def test_size_is_the_compact_wire_form_in_characters(run):
    """A message's size is its wire form as compact JSON and a comma; a request's is the sum, without the tools."""
    request = run(READ).rounds[1].request
    text = json.dumps(request.to_openai()["messages"], ensure_ascii=False, separators=(",", ":"))
    assert request_size(request) == len(text) - len("[]") + len(",")


def test_figures_and_frames_measure_alike(run):
    """One word, one number: a request has the same size in a frame and in a figure, also with a reminder in it."""
    result = run(update("编写"), *[READ] * 5)
    sizes = [frame.size for frame in frames_of(result)]
    assert [request_size(one.request) for one in result.rounds] == sizes
    assert [row[1] for row in request_size_figure(result).rows] == sizes


def test_a_chinese_character_is_one_character():
    """Sizes are characters of the text, not of its escapes."""
    script = [say("编写"), say("ab")]
    model = ScriptedModelClient(script)
    agent = build_agent(P05, model, workspace=".")
    agent.run("one"), agent.run("two")
    assert wire_size(agent.history[1]) == wire_size(agent.history[3])


def test_without_a_list_there_is_no_distance(run):
    """No plan, no number: None, also while reminders come."""
    assert distances(run(*[READ] * 5)) == [None] * 6


def test_the_distance_is_what_stands_behind_the_last_plan(run):
    """It is 0 where the plan's result is the last message, then grows by each message behind it, to the character."""
    result = run(update("a"), READ, READ, update("b"), READ)
    assert distances(result) == [None, 0, sizes(result, 3, 5), sizes(result, 3, 7), 0, sizes(result, 9, 11)]


def test_the_rest_of_its_own_message_counts_too(run):
    """A plan followed by another call's result in the same message is as far away as that result is long."""
    result = run([update("a"), READ])
    assert distances(result)[1] == wire_size(result.history[3])


def test_a_refused_update_is_no_plan(run):
    """The distance goes on growing over a refusal."""
    result = run(update("a"), update(" "))
    assert distances(result)[2] == sizes(result, 3, 5)


def test_a_reminder_is_no_plan_and_is_counted(run):
    """The reminder moves the plan no nearer; its own characters stand behind the plan in that one request."""
    result = run(update("a"), READ, READ, READ, READ)
    reminder = wire_size(result.rounds[4].request.messages[-1])
    assert reminders_in(result.rounds[4].request) == 1
    assert distances(result)[4] == sizes(result, 3, 9) + reminder
    assert distances(result)[5] == sizes(result, 3, 11)


def test_a_result_that_says_updated_is_no_plan(run):
    """A result without the list holds no plan, though the call was accepted and its arguments hold one."""

    def short(call, result):
        return HookAnswer(output=ToolResult("updated")) if call.tool.name == "todo_write" else None

    result = run(update("a"), READ, hooks=Hooks(PostToolUse=(short,)))
    assert distances(result) == [None, None, None]


def test_a_cleared_list_is_a_plan(run):
    """An accepted empty list is the last word on the plan."""
    assert distances(run(update("a"), READ, update()))[3] == 0


def test_a_file_that_looks_like_a_plan_is_none(run, tmp_path):
    """Only a todo tool's result is a plan, whatever other results look like."""
    (tmp_path / "b.txt").write_text('{"todos":[{"content":"a","status":"pending"}]}', encoding="utf-8")
    assert distances(run(call("read_file", path="b.txt"))) == [None, None]


def test_the_plans_of_all_three_designs_are_seen():
    """A snapshot and both checklists are full plans."""
    for design in DESIGNS:
        ran = run_in(design, lambda design: [design.update(("a", "in_progress")), design.update(), say("done")])
        assert [plan_distance(one.request) for one in ran.rounds] == [None, 0, 0]


def test_a_plan_of_ones_own_shape_can_be_named(run):
    """Who has another tool says what a full plan is."""
    result = run(READ, READ)
    found = [plan_distance(one.request, lambda call, text: call.name == "read_file") for one in result.rounds]
    assert found == [None, 0, 0]


def test_the_goal_only_gets_further_away(run):
    """The goal's distance is the size of all that follows the first user message."""
    result = run(READ, update("a"))
    assert [goal_distance(one.request) for one in result.rounds] == [0, sizes(result, 1, 3), sizes(result, 1, 5)]


def test_the_shared_prefix_ends_before_guidance(run):
    """Request k+1 shares all of request k but what was said for k alone; the first shares nothing."""
    rounds = run(*[READ] * 4).rounds
    reminder = wire_size(rounds[3].request.messages[-1])
    sizes = [request_size(one.request) for one in rounds]
    shared = [row[2] for row in request_size_figure(rounds).rows]
    assert shared == [None, *sizes[:3], sizes[3] - reminder]


def test_timeline_is_a_digit_for_a_request():
    """The three published timelines; more than nine reminders show as a plus."""
    assert [timeline(run_in(design, ten_requests).rounds) for design in DESIGNS] == [
        "0001001001",
        "0001112223",
        "0001234567",
    ]
    assert timeline(run_in(DESIGNS[2], lambda design: [*[READ] * 12, say("done")]).rounds) == "000123456789+"


# ---- the words of a figure ----


def test_a_figure_is_its_title_its_text_and_its_data(run):
    """The repr is complete: nothing that the picture shows is only in the picture."""
    result = run(update("a"), READ)
    assert repr(plan_distance_figure({"kept up": result, "none": run(READ)}, title="How far")) == (
        "Figure: How far\n"
        "Line chart, characters over requests. kept up: from 0 in request 2 to 260 in request 3, highest 260,\n"
        "falling 0 times. none: no value in any request.\n"
        "\n"
        "request  kept up  none\n"
        "      1        -     -\n"
        "      2        0     -\n"
        "      3      260     -"
    )


def test_the_timeline_figure_holds_count_update_and_reminders(run):
    """Each row: the count when the request was made, what came of updates in the reply, reminders in the request."""
    result = run(READ, READ, READ, update(" "), update("a"), [update("a"), update(" ")])
    figure = timeline_figure({"P05": result})
    assert figure.columns == ("request", "P05 count", "P05 update", "P05 reminders")
    assert figure.rows == (
        (1, 0, None, 0),
        (2, 1, None, 0),
        (3, 2, None, 0),
        (4, 3, "refused", 1),
        (5, 0, "accepted", 0),
        (6, 0, "accepted", 0),
        (7, 0, None, 0),
    )


def test_runs_of_different_length_stand_in_one_table(run):
    """A shorter run has no data where it has no request."""
    figure = timeline_figure({"long": run(READ), "short": run()})
    assert figure.rows[1] == (2, 1, None, 0, None, None, None)


def test_rounds_of_several_runs_are_one_line(tmp_path):
    """Requests are numbered through, over the prompts of one agent."""
    agent = build_agent(P05, ScriptedModelClient([say("a"), say("b")]), workspace=tmp_path)
    rounds = agent.run("one").rounds + agent.run("two").rounds
    assert [row[0] for row in request_size_figure(rounds).rows] == [1, 2]


# ---- the picture ----

EMPTY = [plan_distance_figure({}), request_size_figure(()), timeline_figure({}), timeline_figure({"none": ()})]


@pytest.mark.parametrize("figure", EMPTY, ids=lambda figure: figure.title)
def test_nothing_to_show_is_still_a_figure(figure):
    """No runs and no rounds draw an empty picture, with its words."""
    assert repr(figure).startswith(f"Figure: {figure.title}\n")
    assert figure._repr_png_()[0].startswith(b"\x89PNG")


def test_the_picture_carries_its_alternative_text(run):
    """PNG bytes with the alt text as metadata, where an HTML export finds it; the same bytes each time."""
    figure = plan_distance_figure({"a": run(update("a"), READ)})
    picture, metadata = figure._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert metadata == {"alt": figure.alt}
    assert figure._repr_png_()[0] == picture
    assert b"Software" not in picture


def test_odd_labels_neither_warn_nor_break(run):
    """Chinese names, formula signs and HTML in a label draw without a warning; the table has them as they are."""
    result = run(update("a"))
    for name in ("编写", "a$\\frac{$b", "<b>", "$"):
        for figure in (plan_distance_figure({name: result}, title=name), timeline_figure({name: result})):
            assert figure._repr_png_()[0].startswith(b"\x89PNG")
            assert name in repr(figure)


def test_no_line_is_known_by_its_colour_alone(run):
    """Up to seven lines differ in colour, in marker and in dashes, and each has its name."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing()
    result = run(update("a"), READ)
    plan_distance_figure({f"run {number}": result for number in range(7)}).draw(drawing)
    lines = drawing.axes[0].lines
    assert len({line.get_color() for line in lines}) == 7
    assert len({line.get_marker() for line in lines}) == 7
    assert len(set(map(str, figures.STYLES))) == 7
    assert [text.get_text() for text in drawing.axes[0].get_legend().get_texts()] == [f"run {n}" for n in range(7)]


def test_colours_can_be_told_apart_in_gray():
    """Bars and lines of the timeline differ in lightness by a quarter of the scale."""

    def lightness(colour):
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert abs(lightness("#E69F00") - lightness(figures.COLOURS[0])) > 0.25


def test_matplotlib_is_imported_late_and_pyplot_never(run):
    """Importing figures and reading their words needs no matplotlib; drawing leaves pyplot alone."""
    code = (
        "import sys, io\n"
        "from labkit.classroom.figures import plan_distance_figure, Figure\n"
        "figure = plan_distance_figure({})\n"
        "repr(figure)\n"
        "print('matplotlib' in sys.modules)\n"
        "figure._repr_png_()\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)\n"
        "for name in [name for name in sys.modules if name.startswith('matplotlib')]:\n"
        "    sys.modules[name] = None\n"
        "print(figure._repr_png_())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.split("\n")[:3] == ["False", "True False", "None"]
    assert done.stderr == ""


def test_a_cell_shows_the_picture_and_the_words(run):
    """First the PNG with the repr and the alt text, then text and data as HTML of their own, without the picture."""
    figure = plan_distance_figure({"<a>": run(update("a"))}, title="A < B")
    (data, metadata), (words, _) = figure.outputs()
    assert set(data) == {"text/plain", "image/png"}
    assert data["text/plain"] == repr(figure)
    assert base64.b64decode(data["image/png"]) == figure._repr_png_()[0]
    assert metadata["image/png"]["alt"] == figure.alt
    assert set(words) == {"text/html"}
    assert "<summary>A &lt; B: in words and numbers</summary>" in words["text/html"]
    assert html.escape(figure.alt) in words["text/html"]
    assert words["text/html"].count("<tr>") == 1 + len(figure.rows)
    assert "<a>" not in words["text/html"]


# ---- the comparison ----


def test_the_comparison_is_made_from_runs(monkeypatch):
    """Every cell of a design changes with the design: with another tracker in its place, its column is another."""
    before = comparison()
    p05, _, third = DESIGNS
    monkeypatch.setattr("labkit.classroom.compare.DESIGNS", (p05, p05, third))
    after = comparison()
    assert [row[1] for row in after.rows] == [row[1] for row in before.rows]
    assert [row[2] for row in after.rows] == [row[1] for row in before.rows]


def test_the_comparison_says_what_the_designs_do():
    """The texts and timelines of the published table, one row for each question."""
    rows = {question: cells for question, *cells in comparison().rows}
    assert rows["tool"] == ["todo_write(todos)", "todo_write(todos)", "todo(items)"]
    assert rows["a list sent as text"][1:] == ["[ ] read\n\n(0/1 completed)", "Error: Max 20 todos allowed"]
    assert rows["two in_progress"][1:] == [
        "Error: Only one todo can be in_progress at a time",
        "Error: Only one task can be in_progress at a time",
    ]
    assert rows["the list after a refused update"] == ["read: pending"] * 3
    assert rows["the list after two updates in one message"] == ["edit: pending"] * 3
    assert rows["reminders in requests 1 to 10"] == ["0001001001", "0001112223", "0001234567"]
    assert [cell[-11:] for cell in rows["a new user turn after request 4"]] == [
        "0 0 1 2 2 3",
        "0 0 1 2 0 1",
        "0 0 1 2 0 1",
    ]


def test_a_table_shows_every_cell_in_both_forms():
    """Text and HTML hold the same cells; markup in a cell is shown, not obeyed."""
    table = in_each(lambda design: [design.update(("<b>", "pending")), say("done")], lambda ran: ran.answers[0])
    assert "[ ] #1: <b> / (0/1 completed)" in repr(table)
    assert "[ ] #1: &lt;b&gt;\n\n(0/1 completed)" in table._repr_html_()
    whole = comparison()
    for row in whole.rows:
        for cell in row:
            assert re.sub("\n+", " / ", cell) in repr(whole)


def test_a_comparison_leaves_nothing_behind():
    """Each run has a workspace of its own, and no path of it is in any result."""
    ran = run_in(DESIGNS[0], ten_requests)
    assert "tmp" not in str(ran.history)
    assert isinstance(DESIGNS[0].tracker(), TodoTracker)
    assert repr(comparison()) == repr(comparison())
