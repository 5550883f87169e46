"""Two published designs on the same loop: each quirk, and each text character for character."""

import ast
import json
from itertools import pairwise

import pytest

from labkit import P05, ScriptedModelClient, TodoTracker, build_agent, call, say
from labkit.designs.day55 import MAX_TEXT, MAX_TEXT_DEPTH, in_yellow
from labkit.designs.day55 import TodoManager as Day55TodoManager
from labkit.designs.s03 import TodoManager as S03TodoManager

DESIGNS = pytest.mark.parametrize("design", [Day55TodoManager, S03TodoManager], ids=["day55", "s03"])
REMINDER = "<reminder>Update your todos.</reminder>"
STATUS = {"type": "string", "enum": ["pending", "in_progress", "completed"]}


def one_call(tracker, name, **arguments):
    """The result of one call through prepare and handler, as an agent gives it."""
    return raw_call(tracker, name, json.dumps(arguments))


def raw_call(tracker, name, arguments):
    agent = build_agent(P05, ScriptedModelClient([call(name, arguments), say("ok")]), workspace=".", todos=tracker)
    return agent.run("go").rounds[0].settled[0].result


def day55(todos, tracker=None):
    return one_call(tracker or Day55TodoManager(), "todo_write", todos=todos)


def s03(items, tracker=None):
    return one_call(tracker or S03TodoManager(), "todo", items=items)


def refused(result):
    """The words of a refusal, after checking that it is one."""
    assert result.error == "invalid_arguments"
    assert result.content.startswith("Error: ")
    return result.content.removeprefix("Error: ")


def items(tracker):
    return [(item.content if hasattr(item, "content") else (item.id, item.text), item.status) for item in tracker.todos]


def copies(requests, text):
    """How often the text stands in each request."""
    return [sum(text in message.content for message in request.messages) for request in requests]


def timeline(tracker, text, tmp_path, script=None, prompts=("go",)):
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    model = ScriptedModelClient(script or [*[call("read_file", path="a.txt")] * 9, say("done")])
    agent = build_agent(P05, model, workspace=tmp_path, todos=tracker)
    for prompt in prompts:
        agent.run(prompt)
    return "".join(map(str, copies(model.requests, text)))


# ---- what is sent ----


def test_day55_sends_the_published_tool():
    """day55 sends `todo_write` with its own description and its own schema."""
    assert Day55TodoManager().tool_definition.to_openai(strict=True)["function"] == {
        "name": "todo_write",
        "description": "Create and manage a task list for your current coding session.",
        "parameters": {
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "maxItems": 20,
                    "items": {
                        "type": "object",
                        "properties": {"content": {"type": "string", "minLength": 1}, "status": STATUS},
                        "required": ["content", "status"],
                    },
                }
            },
            "required": ["todos"],
        },
    }


def test_s03_sends_the_published_tool():
    """s03 sends `todo` with its own description and its own schema, in which no cap is named."""
    assert S03TodoManager().tool_definition.to_openai(strict=True)["function"] == {
        "name": "todo",
        "description": "Update task list. Track progress on multi-step tasks.",
        "parameters": {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "status": STATUS},
                        "required": ["id", "text", "status"],
                    },
                }
            },
            "required": ["items"],
        },
    }


@pytest.mark.parametrize(
    ("design", "name", "line"),
    [
        (
            Day55TodoManager,
            "todo_write",
            "Before starting any multi-step task, use todo_write to plan your steps. Update status as you go.",
        ),
        (
            S03TodoManager,
            "todo",
            "Use the todo tool to plan multi-step tasks. Mark in_progress before starting, completed when done. "
            "Prefer tools over prose.",
        ),
    ],
)
def test_a_design_brings_its_own_tool_and_prompt_line_and_p05s_are_absent(design, name, line, tmp_path):
    """With todos= of a design the request has that design's tool and prompt line, and nothing of P05's tracker."""
    model = ScriptedModelClient([say("hi")])
    build_agent(P05, model, workspace=tmp_path, todos=design()).run("go")
    request = model.requests[0]
    theirs = TodoTracker()
    assert request.messages[0].content.endswith("\n" + line)
    assert theirs.system_prompt not in request.messages[0].content
    assert [tool.name for tool in request.tools][-1] == name
    assert theirs.tool_definition.description not in json.dumps(request.to_openai())
    assert str(tmp_path) not in request.messages[0].content


@DESIGNS
def test_an_update_asks_nobody_and_leaves_one_audit_entry(design, tmp_path):
    """The effect is write, no rule names the tool: allowed by default, with one entry."""
    tracker = design()
    arguments = {"todos": []} if design is Day55TodoManager else {"items": []}
    model = ScriptedModelClient([call(tracker.tool_definition.name, **arguments), say("ok")])
    audit = build_agent(P05, model, workspace=tmp_path, todos=tracker).run("go").audit
    assert [(entry.effect, entry.decision, entry.source) for entry in audit] == [("write", "allow", "default")]


# ---- what comes back ----


def test_day55_answers_with_a_checklist():
    """The result is marks and contents, a blank line, and how many are completed."""
    result = day55(
        [
            {"content": "read", "status": "completed"},
            {"content": "edit", "status": "in_progress"},
            {"content": "test", "status": "pending"},
        ]
    )
    assert (result.content, result.error) == ("[x] read\n[>] edit\n[ ] test\n\n(1/3 completed)", None)


def test_s03_answers_with_a_checklist_of_ids():
    """The result is day55's with `#id: ` before each text."""
    result = s03(
        [
            {"id": "1", "text": "read", "status": "completed"},
            {"id": "b", "text": "edit", "status": "in_progress"},
            {"id": "3", "text": "test", "status": "pending"},
        ]
    )
    assert (result.content, result.error) == ("[x] #1: read\n[>] #b: edit\n[ ] #3: test\n\n(1/3 completed)", None)


def test_an_empty_list_clears():
    """No items are legal in both designs, and the answer says so."""
    for tracker, send, one in (
        (Day55TodoManager(), day55, {"content": "a"}),
        (S03TodoManager(), s03, {"text": "a"}),
    ):
        send([one], tracker)
        assert len(tracker.todos) == 1
        assert send([], tracker).content == "No todos."
        assert tracker.todos == ()


def test_day55_shows_its_panel_to_the_person_and_nobody_else():
    """After an accepted update `show` gets the title and the list; a refusal shows nothing; the result is the list."""
    shown = []
    tracker = Day55TodoManager(shown.append)
    result = day55([{"content": "read"}], tracker)
    refused(day55([{"content": " "}], tracker))
    assert shown == ["## Current Tasks\n[ ] read\n\n(0/1 completed)"]
    assert shown == [f"## Current Tasks\n{result.content}"]
    assert in_yellow(shown[0]) == "\x1b[33m## Current Tasks\x1b[0m\n[ ] read\n\n(0/1 completed)"


def test_day55s_screen_may_break_without_telling_the_model():
    """A `show` that raises changes neither the list nor the result."""
    tracker = Day55TodoManager(lambda panel: 1 / 0)
    assert day55([{"content": "read"}], tracker).content == "[ ] read\n\n(0/1 completed)"
    assert len(tracker.todos) == 1


@DESIGNS
def test_nothing_is_printed(design, capsys):
    """A tracker prints nothing; who wants to see gives a callable."""
    (day55 if design is Day55TodoManager else s03)([], design())
    assert capsys.readouterr().out == ""


# ---- tolerance ----


@pytest.mark.parametrize(
    ("todo", "stored"),
    [
        ({"content": "  ship \n"}, ("ship", "pending")),
        ({"content": 123, "status": "COMPLETED"}, ("123", "completed")),
        ({"content": None}, ("None", "pending")),
        ({"content": True, "status": "In_Progress"}, ("True", "in_progress")),
        ({"content": ["a", 1]}, ("['a', 1]", "pending")),
        ({"content": "x", "priority": "high", "id": 7}, ("x", "pending")),
        ({"content": "编写"}, ("编写", "pending")),
    ],
)
def test_day55_takes_what_can_be_made_a_todo(todo, stored):
    """Values become text, content is stripped, a status is lower-cased and may be missing, unknown keys are dropped."""
    tracker = Day55TodoManager()
    assert day55([todo], tracker).error is None
    assert items(tracker) == [stored]


@pytest.mark.parametrize(
    ("item", "stored"),
    [
        ({"id": "a", "text": "  ship \n"}, (("a", "ship"), "pending")),
        ({"text": 123, "status": "COMPLETED"}, (("1", "123"), "completed")),
        ({"id": 7, "text": None}, (("7", "None"), "pending")),
        ({"id": None, "text": True, "status": "In_Progress"}, (("None", "True"), "in_progress")),
        ({"id": " x ", "text": "y", "priority": "high"}, ((" x ", "y"), "pending")),
    ],
)
def test_s03_takes_what_can_be_made_an_item(item, stored):
    """As day55; an id is text, too, and is the item's place, from 1, where it is missing."""
    tracker = S03TodoManager()
    assert s03([item], tracker).error is None
    assert items(tracker) == [stored]


def test_s03_numbers_items_without_an_id_by_place():
    """The default id is the place among all items, also beside items that have one; ids may repeat."""
    tracker = S03TodoManager()
    assert s03([{"text": "a"}, {"text": "b", "id": "3"}, {"text": "c"}], tracker).error is None
    assert [item.id for item in tracker.todos] == ["1", "3", "3"]


def test_keys_beside_the_list_are_ignored():
    """Neither design minds what else is in the object."""
    assert one_call(Day55TodoManager(), "todo_write", todos=[], note="x").content == "No todos."
    assert one_call(S03TodoManager(), "todo", items=[], note="x").content == "No todos."


def test_twenty_is_the_most():
    """20 items are taken; 21 are one too many, before anything in them is looked at."""
    assert day55([{"content": "x"}] * 20).error is None
    assert s03([{"text": "x"}] * 20).error is None
    assert refused(day55([5] * 21)) == "Max 20 todos allowed"
    assert refused(s03([5] * 21)) == "Max 20 todos allowed"


# ---- faults, in the published words ----


@pytest.mark.parametrize(
    ("todos", "words"),
    [
        ("not a list", "todos must be a list or JSON array string"),
        ("", "todos must be a list or JSON array string"),
        ("[unknown]", "todos must be a list or JSON array string"),
        ("{}", "todos must be a list"),
        ("'[]'", "todos must be a list"),
        ("({'content': 'a'},)", "todos must be a list"),
        (7, "todos must be a list"),
        (None, "todos must be a list"),
        ({"content": "a"}, "todos must be a list"),
        (["a"], "todos[0] must be an object"),
        ([{"content": "a"}, None], "todos[1] must be an object"),
        ([{"content": "a"}, {}], "todos[1] requires content"),
        ([{"content": " \n"}], "todos[0] requires content"),
        ([{"content": "", "status": "bad"}], "todos[0] requires content"),
        ([{"content": "a", "status": "DONE"}], "todos[0] has invalid status 'done'"),
        ([{"content": "a", "status": " pending"}], "todos[0] has invalid status ' pending'"),
        ([{"content": "a", "status": None}], "todos[0] has invalid status 'none'"),
        ([{"content": "a", "status": ""}], "todos[0] has invalid status ''"),
        ([{"content": "a", "status": "x"}, {"content": ""}], "todos[0] has invalid status 'x'"),
        ([{"content": "a", "status": "in_progress"}] * 2, "Only one todo can be in_progress at a time"),
        ([{"content": "a", "status": "in_progress"}] * 2 + [{}], "todos[2] requires content"),
    ],
)
def test_day55_names_the_first_fault(todos, words):
    """One fault is named, in the published order, and the list stays the same object."""
    tracker = Day55TodoManager()
    day55([{"content": "old", "status": "in_progress"}], tracker)
    before = tracker.todos
    assert refused(day55(todos, tracker)) == words
    assert tracker.todos is before
    assert items(tracker) == [("old", "in_progress")]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([{"text": " "}], "Item 1: text required"),
        ([{"text": "a"}, {"id": "b"}], "Item b: text required"),
        ([{"id": 9, "text": "", "status": "bad"}], "Item 9: text required"),
        ([{"text": "a", "status": "DONE"}], "Item 1: invalid status 'done'"),
        ([{"id": None, "text": "a", "status": " pending"}], "Item None: invalid status ' pending'"),
        ([{"text": "a", "status": None}], "Item 1: invalid status 'none'"),
        ([{"text": "a", "status": "in_progress"}] * 2, "Only one task can be in_progress at a time"),
        ([{"text": "a", "status": "in_progress"}] * 2 + [{}], "Item 3: text required"),
        ('[{"text": "a"}]', "'str' object has no attribute 'get'"),
        ("x" * 20, "'str' object has no attribute 'get'"),
        ("[]", "'str' object has no attribute 'get'"),
        ("", "'str' object has no attribute 'get'"),
        ("x" * 21, "Max 20 todos allowed"),
        ('[{"text": "write the tests"}]', "Max 20 todos allowed"),
    ],
)
def test_s03_names_the_first_fault(given, words):
    """One fault is named, in the published order, and the list stays the same object."""
    tracker = S03TodoManager()
    s03([{"text": "old", "status": "in_progress"}], tracker)
    before = tracker.todos
    assert refused(s03(given, tracker)) == words
    assert tracker.todos is before
    assert items(tracker) == [(("1", "old"), "in_progress")]


@pytest.mark.parametrize(
    "given", [None, 7, True, {}, {"text": "a"}, dict.fromkeys("abcdefghijklmnopqrstuvw"), ["a"], [[]]]
)
def test_s03_refuses_shapes_that_no_line_names(given):
    """Any other shape is a refusal that begins `Error: `, and the list stays."""
    tracker = S03TodoManager()
    s03([{"text": "old"}], tracker)
    before = tracker.todos
    assert refused(s03(given, tracker))
    assert tracker.todos is before


def test_a_call_without_the_list_is_refused():
    """An empty object is no list in either design."""
    assert refused(one_call(Day55TodoManager(), "todo_write")) == "todos must be a list"
    assert refused(one_call(S03TodoManager(), "todo"))


@DESIGNS
def test_broken_outer_json_never_reaches_the_tracker(design):
    """What is not JSON is refused by prepare, in labkit's words."""
    tracker = design()
    assert raw_call(tracker, tracker.tool_definition.name, '{"todos": [').error == "invalid_json"
    assert tracker.todos == ()


# ---- a list sent as text ----


@pytest.mark.parametrize(
    "text",
    [
        '[{"content": "ship", "status": "pending"}]',
        "[{'content': 'ship', 'status': 'pending'}]",
        ' \n[{"content": "ship"}] ',
        "[{'content': 'ship', 'extra': None}]",
        '[{"content": "ship", "extra": null}]',
    ],
)
def test_day55_takes_a_list_sent_as_text(text):
    """JSON first, then a Python literal."""
    tracker = Day55TodoManager()
    assert day55(text, tracker).content == "[ ] ship\n\n(0/1 completed)"
    assert items(tracker) == [("ship", "pending")]


def test_day55_never_runs_text(tmp_path):
    """A text that is code is refused; what it would do does not happen."""
    target = tmp_path / "made"
    for code in (f"open({str(target)!r}, 'w')", f"[{{'content': open({str(target)!r}, 'w')}}]", "[x for x in ()]"):
        assert refused(day55(code)) == "todos must be a list or JSON array string"
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 50_000 + "]" * 50_000,
        '{"a":' * 20_000,
        "(" * 100_000,
        "-" * 99_999 + "1",
        "[" + "-" * 5_000 + "1]",
        "1+" * 49_999 + "1",
        "[{'content':" + "not " * 20_000 + "1}]",
        '"""x"y"""' + "[" * 99_000,
        '# "\n' + "[" * 99_000,
        "'" * 99_999,
        '\\"' * 50_000,
        "[\0]",
        "[{'content': " + "9" * 5_000 + "}]",
        '[{"content": ' + "9" * 5_000 + "}]",
        "[{[]: 1}]",
    ],
    ids=lambda text: f"{len(text)} characters",
)
def test_day55_survives_text_that_breaks_parsers(text):
    """Depth, operators, quotes, zero bytes, endless numbers: a refusal, no exception, no warning, no crash."""
    assert refused(day55(text)) == "todos must be a list or JSON array string"


@pytest.mark.parametrize("error", [MemoryError, RecursionError, SyntaxError, ValueError, TypeError])
def test_day55_refuses_when_the_literal_parser_gives_up(error, monkeypatch):
    """Whatever limit the parser meets, the model reads the published words."""

    def give_up(text):
        raise error

    monkeypatch.setattr(ast, "literal_eval", give_up)
    assert refused(day55("['a', ]")) == "todos must be a list or JSON array string"


def test_day55_bounds_text_in_length_and_depth():
    """At the bound a text is read; beyond it, it is refused like one that cannot be read."""
    head, tail = '[{"content": "', '"}]'
    fits = head + "x" * (MAX_TEXT - len(head) - len(tail)) + tail
    assert day55(fits).error is None
    assert refused(day55(fits.replace("x", "xx", 1))) == "todos must be a list or JSON array string"
    for quote in "'\"":
        text = f"[{{{quote}content{quote}: %s}}]"
        assert day55(text % ("[" * (MAX_TEXT_DEPTH - 2) + "]" * (MAX_TEXT_DEPTH - 2))).error is None
        assert refused(day55(text % ("[" * (MAX_TEXT_DEPTH - 1) + "]" * (MAX_TEXT_DEPTH - 1))))


def test_brackets_inside_quotes_are_not_depth():
    """A content full of brackets is text like any other."""
    assert day55(json.dumps([{"content": "[" * 1_000 + '\\"'}])).error is None
    assert day55(repr([{"content": "it's [" * 200}])).error is None


@pytest.mark.parametrize("text", ['[{"content": "a\\ud800"}]', "[{'content': 'a\\ud800'}]"])
def test_a_lone_surrogate_in_text_becomes_ufffd(text):
    """What is stored and sent is text that UTF-8 can hold."""
    tracker = Day55TodoManager()
    assert day55(text, tracker).content == "[ ] a\ufffd\n\n(0/1 completed)"
    assert items(tracker) == [("a\ufffd", "pending")]


def test_a_number_too_long_to_write_out_is_no_content():
    """A literal can hold a number that Python refuses to print; that is a blank content, not an exception."""
    assert refused(day55(f"[{{'content': 0x{'f' * 5_000}}}]")) == "todos[0] requires content"


def test_odd_escapes_in_a_literal_warn_nobody():
    """A Python literal with an escape that Python does not know is read as it stands, without a warning."""
    tracker = Day55TodoManager()
    assert day55(r"[{'content': 'a\d'}]", tracker).error is None
    assert items(tracker) == [(r"a\d", "pending")]


# ---- the count and the reminder ----


@pytest.mark.parametrize(
    ("tracker", "text", "expected"),
    [
        (TodoTracker, "Keep the TODO list current.", "0001001001"),
        (Day55TodoManager, REMINDER, "0001112223"),
        (S03TodoManager, REMINDER, "0001234567"),
    ],
    ids=["P05", "day55", "s03"],
)
def test_three_timelines(tracker, text, expected, tmp_path):
    """Copies of the reminder visible in requests 1 to 10 of ten rounds without an update."""
    assert timeline(tracker(), text, tmp_path) == expected


@DESIGNS
def test_the_reminder_is_a_user_message_after_the_results_and_stays(design, tmp_path):
    """It stands right behind the third round's last result, is whole and exact, and is in the history at the end."""
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    read = call("read_file", path="a.txt")
    model = ScriptedModelClient([read, read, [read, read], say("done")])
    result = build_agent(P05, model, workspace=tmp_path, todos=design()).run("go")
    last = result.history[-4:]
    assert [message.to_openai()["role"] for message in last] == ["tool", "tool", "user", "assistant"]
    assert last[2].content == REMINDER
    assert result.rounds[2].kept == (last[2],)
    assert model.requests[3].messages[-1] is last[2]
    for shorter, longer in pairwise(model.requests):
        assert longer.messages[: len(shorter.messages)] == tuple(shorter.messages)


@pytest.mark.parametrize(
    ("design", "counts"), [(Day55TodoManager, [1, 2, 0, 1, 2, 0]), (S03TodoManager, [1, 2, 3, 4, 5, 6])]
)
def test_what_the_reminder_does_to_the_count(design, counts):
    """day55 starts anew after a reminder; s03 counts on."""
    tracker = design()
    seen = []
    for _ in counts:
        tracker.record_tool_round(("read_file", "read_file"))
        seen.append(tracker.view().count)
    assert seen == counts


@DESIGNS
def test_the_name_among_the_calls_clears_the_count(design, tmp_path):
    """Also when the call was refused, and wherever in the message it stands."""
    tracker = design()
    read = call("read_file", path="a.txt")
    broken = call(tracker.tool_definition.name, "{}")
    assert timeline(tracker, REMINDER, tmp_path, [read, read, [read, broken], read, read, say("done")]) == "000000"
    assert tracker.view().count == 2


@DESIGNS
def test_the_other_designs_tool_name_is_just_a_name(design):
    """Only a design's own tool clears its count."""
    tracker = design()
    other = {"todo_write": "todo", "todo": "todo_write"}[tracker.tool_definition.name]
    tracker.record_tool_round((other,))
    assert tracker.view().count == 1


@DESIGNS
def test_a_round_without_calls_is_not_counted(design):
    """Text alone changes nothing."""
    tracker = design()
    assert tracker.record_tool_round(()) == ()
    assert tracker.view().count == 0


def test_a_new_prompt_clears_the_count_of_the_designs_and_not_of_p05(tmp_path):
    """The count is per run in both designs, per agent in P05: two rounds and one more across a prompt."""
    read = call("read_file", path="a.txt")
    script = [read, read, say("done"), read, say("done")]
    for tracker, text, expected in (
        (TodoTracker(), "Keep the TODO list current.", "00001"),
        (Day55TodoManager(), REMINDER, "00000"),
        (S03TodoManager(), REMINDER, "00000"),
    ):
        assert timeline(tracker, text, tmp_path, script, ("one", "two")) == expected


@DESIGNS
def test_the_list_outlives_a_run(design):
    """A new prompt leaves the list as it was."""
    tracker = design()
    (day55 if design is Day55TodoManager else s03)([{"content": "a", "text": "a"}], tracker)
    before = tracker.todos
    tracker.begin_run()
    assert tracker.todos is before


# ---- whose list it is ----


@DESIGNS
def test_one_tracker_for_two_agents_is_the_published_leak(design, tmp_path):
    """Who hands one tracker to two agents shows one agent's plan, and its count, to the other."""
    shared = design()
    name, key, word = ("todo_write", "todos", "content") if design is Day55TodoManager else ("todo", "items", "text")
    read = call("read_file", path="a.txt")
    mine = ScriptedModelClient([call(name, **{key: [{word: "secret"}]}), read, read, say("done")])
    yours = ScriptedModelClient([read, say("done")])
    one = build_agent(P05, mine, workspace=tmp_path, todos=shared)
    two = build_agent(P05, yours, workspace=tmp_path, todos=shared)
    rounds = one.rounds("go")
    next(rounds), next(rounds), next(rounds)
    assert shared.view().count == 2
    two.run("hello")
    assert one.todos is two.todos
    assert "secret" in str(two.todos)
    assert shared.view().count == 1


@DESIGNS
def test_two_trackers_share_nothing(design):
    """A tracker of one's own is a list of one's own."""
    one, two = design(), design()
    (day55 if design is Day55TodoManager else s03)([{"content": "a", "text": "a"}], one)
    assert (len(one.todos), len(two.todos)) == (1, 0)


@DESIGNS
def test_lists_and_views_are_frozen(design):
    """Who holds an item or a view cannot change it, and an older view keeps what it saw."""
    tracker = design()
    (day55 if design is Day55TodoManager else s03)([{"content": "a", "text": "a"}], tracker)
    view = tracker.view()
    assert type(view.todos) is tuple
    for thing, field in ((view, "count"), (view, "todos"), (view.todos[0], "status")):
        with pytest.raises(AttributeError):
            setattr(thing, field, None)
    (day55 if design is Day55TodoManager else s03)([], tracker)
    assert len(view.todos) == 1
    assert tracker.view().todos == ()


def test_two_updates_in_one_message_run_in_order(tmp_path):
    """Both are answered, the last valid one stands; a refused one in between changes nothing."""
    tracker = S03TodoManager()
    script = [[call("todo", items=[{"text": text}]) for text in ("first", "second", "")], say("done")]
    result = build_agent(P05, ScriptedModelClient(script), workspace=tmp_path, todos=tracker).run("go")
    assert [one.result.content for one in result.rounds[0].settled] == [
        "[ ] #1: first\n\n(0/1 completed)",
        "[ ] #1: second\n\n(0/1 completed)",
        "Error: Item 1: text required",
    ]
    assert items(tracker) == [(("1", "second"), "pending")]
