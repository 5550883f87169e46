"""`todo_write`: a whole list in, the same list back, or nothing changed; and a reminder after three rounds without it.

The acceptance list of the lesson comes first, one test a line; behind it what must hold for all inputs.
"""

import json
import sys
import unicodedata

import pytest
from helpers import REMINDER, Lab, assert_paired, plan, read, wire
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import (
    P04,
    P05,
    PreparedCall,
    ScriptedModelClient,
    SystemMessage,
    TodoItem,
    TodoTracker,
    ToolCall,
    ToolRegistry,
    ToolResult,
    build_agent,
    call,
    reply,
    say,
)
from labkit.todos import (
    MAX_TODOS,
    STALE_TOOL_ROUNDS,
    TODO_STALE_REMINDER,
    TODO_STATUSES,
    TODO_SYSTEM_PROMPT,
    TodoView,
)

PROMPT_LINE = "For complex tasks, call todo_write with the complete task snapshot and update it when the plan changes."
SHIP = TodoItem("ship", "pending")


def tracked(*contents):
    """A tracker with a list of pending items, and a function that sends it an arguments text."""
    tracker = TodoTracker()
    registry = ToolRegistry((tracker.tool_definition,))

    def send(arguments):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        found = registry.prepare(ToolCall("c1", "todo_write", text))
        return registry.invoke(found) if isinstance(found, PreparedCall) else found

    if contents:
        assert send({"todos": [{"content": one, "status": "pending"} for one in contents]}).error is None
    return tracker, send


def items(*contents):
    """Wire items, all pending."""
    return [{"content": content, "status": "pending"} for content in contents]


# ---- acceptance: observable ----


def test_observable_1_each_todo_write_returns_the_whole_list_as_stable_json(folder):
    """The result is the whole list and never just the change, the same text for the same list."""
    lab = Lab(folder, [plan("a", "b"), plan("a", "b", "c"), plan("a", "b", "c"), say("done")])
    ab = '{"todos":[{"content":"a","status":"pending"},{"content":"b","status":"pending"}]}'
    abc = ab[:-2] + ',{"content":"c","status":"pending"}]}'
    assert [one.result for one in lab.settled] == [ToolResult(ab), ToolResult(abc), ToolResult(abc)]


def test_observable_2_an_illegal_update_does_not_overwrite_the_old_snapshot(folder):
    """After a refused call the list is the very object it was."""
    model = ScriptedModelClient([plan("ship"), say("done"), plan("x", status="failed"), say("done")])
    agent = build_agent(P05, model, workspace=folder)
    agent.run("go")
    before = agent.todos
    assert before == (SHIP,)
    result = agent.run("again")
    assert result.rounds[0].settled[0].result.error == "invalid_arguments"
    assert agent.todos is before


def test_observable_3_each_agent_has_a_list_of_its_own(folder):
    """Two agents over one workspace share no list."""
    one, two = Lab(folder, [plan("ship"), say("done")]), Lab(folder, [say("done")])
    assert (one.agent.todos, two.agent.todos) == ((SHIP,), ())
    two = Lab(folder, [plan("other"), say("done")])
    assert one.agent.todos == (SHIP,)
    assert two.agent.todos == (TodoItem("other", "pending"),)


def test_observable_4_after_three_rounds_of_other_tools_the_next_request_alone_holds_one_temporary_reminder(folder):
    """Three rounds without `todo_write`, and request 4 and no other holds the reminder, once and last."""
    lab = Lab(folder, [read(), read(), read(), read(), say("done")])
    assert lab.reminders == [0, 0, 0, 1, 0]
    assert lab.model.requests[3].messages[-1] == SystemMessage(REMINDER)
    assert REMINDER not in [message.content for message in lab.agent.history]


# ---- acceptance: unit ----


def test_unit_three_statuses_and_trimmed_content():
    """The three statuses are taken, and content loses white space at both ends."""
    tracker, send = tracked()
    result = send({"todos": [{"content": f" \t{n} x \n", "status": status} for n, status in enumerate(TODO_STATUSES)]})
    assert TODO_STATUSES == ("pending", "in_progress", "completed")
    assert tracker.todos == (("0 x", "pending"), ("1 x", "in_progress"), ("2 x", "completed"))
    assert [tuple(one.values()) for one in json.loads(result.content)["todos"]] == list(tracker.todos)


def test_unit_complete_stable_ascii_json():
    """Compact, keys in order, lower-case escapes above U+007F, surrogate pairs above U+FFFF, U+007F raw."""
    _, send = tracked()
    result = send('{"todos":[{"status":"completed","content":"Pr\u00dcfen \u65e5 \U0001f680 \x7f \\" \\\\ /"}]}')
    assert result.content == (
        '{"todos":[{"content":"Pr\\u00dcfen \\u65e5 \\ud83d\\ude80 \x7f \\" \\\\ /","status":"completed"}]}'
    )
    assert send({"todos": [{"content": "ship", "status": "completed"}]}).content == (
        '{"todos":[{"content":"ship","status":"completed"}]}'
    )


def test_unit_exactly_fifty_accepted():
    """Fifty items are taken, and MAX_TODOS says so."""
    tracker, send = tracked()
    fifty = [f"item {n}" for n in range(50)]
    assert send({"todos": items(*fifty)}).error is None
    assert [one.content for one in tracker.todos] == fifty
    assert MAX_TODOS == 50


ITEM_FIELDS = "is not a known field; the fields are: content, status"
INVALID = {
    "not an array": ('{"todos":{"content":"a"}}', "invalid_arguments", "todos: must be a list."),
    "blank content": (
        '{"todos":[{"content":" ","status":"pending"}]}',
        "invalid_arguments",
        "todos[0].content: must not be blank.",
    ),
    "unknown status": (
        '{"todos":[{"content":"a","status":"failed"}]}',
        "invalid_arguments",
        "todos[0].status: must be one of 'pending', 'in_progress', 'completed'.",
    ),
    "unknown field in an item": (
        '{"todos":[{"content":"a","status":"pending","id":1}]}',
        "invalid_arguments",
        f"todos[0].id: {ITEM_FIELDS}.",
    ),
    "unknown field beside todos": (
        '{"todos":[],"merge":true}',
        "invalid_arguments",
        "merge: is not a known field; the fields are: todos.",
    ),
    "51 items": (
        json.dumps({"todos": items(*map(str, range(51)))}),
        "invalid_arguments",
        "todos: has 51 items; 50 are allowed at the most.",
    ),
    "broken JSON": (
        '{"todos":[{"content":"a"',
        "invalid_json",
        "the arguments are not JSON that can be read. Send one JSON object, complete and plainly nested.",
    ),
}


@pytest.mark.parametrize(("arguments", "code", "fault"), INVALID.values(), ids=INVALID)
def test_unit_seven_invalid_inputs_each_with_its_code_its_text_and_the_same_object(arguments, code, fault, folder):
    """A refusal has its code and names its fault, and the list is the same object and value as before."""
    model = ScriptedModelClient([plan("ship"), say("done"), call("todo_write", arguments), say("done")])
    agent = build_agent(P05, model, workspace=folder)
    agent.run("go")
    before, value = agent.todos, tuple(agent.todos)
    assert before == (SHIP,)
    settled = agent.run("again").rounds[0].settled[0]
    was = "todo_write was not run. " if code == "invalid_arguments" else ""
    assert settled.result == ToolResult(f"Error [{code}]: {was}{fault}", code)
    assert settled.audit is None
    assert agent.todos is before
    assert agent.todos == value


def test_unit_control_an_accepted_equal_list_is_another_object(folder):
    """The control of the test above: an accepted list, be it equal, is a new object."""
    model = ScriptedModelClient([plan("ship"), say("done"), plan("ship"), say("done")])
    agent = build_agent(P05, model, workspace=folder)
    agent.run("go")
    before = agent.todos
    agent.run("again")
    assert agent.todos == before
    assert agent.todos is not before


def test_unit_two_trackers_isolated():
    """Neither list nor count of one tracker shows in another."""
    one, send = tracked("ship")
    two, _ = tracked()
    one.record_tool_round(("read_file",))
    assert (one.view(), two.view()) == (TodoView((SHIP,), 1), TodoView((), 0))
    send({"todos": []})
    assert (one.todos, two.todos) == ((), ())


def test_unit_one_reminder_after_three_rounds():
    """The third round without an update brings one reminder, and the count begins anew."""
    tracker, _ = tracked()
    said = []
    for _ in range(7):
        said.append(len(tracker.before_model()))
        assert tracker.record_tool_round(("read_file",)) == ()
    assert said == [0, 0, 0, 1, 0, 0, 1]
    assert STALE_TOOL_ROUNDS == 3


def test_unit_todo_write_resets_the_count():
    """A round with `todo_write` among its calls sets the count to 0, whatever else was called."""
    for names in (("todo_write",), ("read_file", "todo_write", "glob")):
        tracker, _ = tracked()
        tracker.record_tool_round(("read_file",))
        tracker.record_tool_round(("read_file",))
        tracker.record_tool_round(names)
        assert tracker.view().count == 0


def test_unit_text_only_changes_nothing():
    """A round without calls leaves the count as it is."""
    tracker, _ = tracked()
    tracker.record_tool_round(("read_file",))
    tracker.record_tool_round(())
    assert tracker.view().count == 1


def test_unit_three_calls_count_one(folder):
    """Three calls in one message are one round."""
    lab = Lab(folder, [[read(), read(), read()], read(), read(), say("done")])
    assert [one.after.count for one in lab.result.rounds] == [1, 2, 3, 0]
    assert lab.reminders == [0, 0, 0, 1]


# ---- acceptance: from build_agent(P05, ...) ----


def test_p05_the_tool_list_is_the_earlier_profiles_and_todo_write(folder):
    """P05 sends P04's tools, and todo_write behind them."""
    earlier = Lab(folder, [say("done")], profile=P04).model.requests[0].to_openai()["tools"]
    tools = Lab(folder, [say("done")]).model.requests[0].to_openai()["tools"]
    assert tools[:-1] == earlier
    assert tools[-1] == {
        "type": "function",
        "function": {
            "name": "todo_write",
            "description": "Replace the current TODO list with a complete task snapshot.",
            "parameters": {
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "maxItems": 50,
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": {"type": "string", "minLength": 1},
                                "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                            },
                            "required": ["content", "status"],
                            "additionalProperties": False,
                        },
                    }
                },
                "required": ["todos"],
                "additionalProperties": False,
            },
        },
    }


def test_p05_the_prompt_line_is_in_the_request(folder):
    """The system prompt of P05 is P04's and one line more."""
    earlier = wire(Lab(folder, [say("done")], profile=P04).model.requests[0])[0]
    prompt = wire(Lab(folder, [say("done")]).model.requests[0])[0]
    assert prompt == {"role": "system", "content": f"{earlier['content']}\n{PROMPT_LINE}"}
    assert f"\n{PROMPT_LINE}" == TODO_SYSTEM_PROMPT


def test_p05_no_approval_asked_and_one_audit_entry_with_source_default(folder):
    """todo_write asks nobody, and leaves one audit entry: allowed, by default, effect write."""
    asked = []
    lab = Lab(folder, [plan("ship"), say("done")], approver=lambda ask: asked.append(ask) or "allow")
    (entry,) = lab.result.audit
    assert asked == []
    assert (entry.tool, entry.effect, entry.decision, entry.source) == ("todo_write", "write", "allow", "default")
    assert entry.asked is False
    control = Lab(folder, [call("shell", command="exit"), say("done")], approver=lambda ask: asked.append(ask))
    assert len(asked) == 1
    assert control.settled[0].decision == "deny"


def test_p05_the_result_is_paired_with_its_call_id(folder):
    """The tool message of a todo_write names its call."""
    made = call("todo_write", todos=items("ship"), id="c7")
    lab = Lab(folder, [made, say("done")])
    assert wire(lab.model.requests[1])[-1] == {
        "role": "tool",
        "tool_call_id": "c7",
        "content": '{"todos":[{"content":"ship","status":"pending"}]}',
    }


def test_p05_the_reminder_is_in_the_fourth_request_only_and_not_in_the_history(folder):
    """Request 4 ends with the reminder; requests 1 to 3 and 5 hold none, nor does the history."""
    lab = Lab(folder, [read(), read(), read(), plan("ship"), say("done")])
    assert lab.reminders == [0, 0, 0, 1, 0]
    assert wire(lab.model.requests[3])[-1] == {"role": "system", "content": TODO_STALE_REMINDER}
    assert TODO_STALE_REMINDER == REMINDER
    assert not [message for message in lab.agent.history if REMINDER in message.content]
    third, fourth = wire(lab.model.requests[2]), wire(lab.model.requests[3])
    assert fourth[: len(third)] == third


def test_p05_later_requests_do_not_repeat_it_without_three_more_rounds(folder):
    """With no update at all the reminder is visible in requests 4, 7 and 10."""
    lab = Lab(folder, [read()] * 9 + [say("done")])
    assert lab.reminders == [0, 0, 0, 1, 0, 0, 1, 0, 0, 1]


# ---- what a list is ----


@pytest.mark.parametrize(
    "todos",
    [[], items("a", "a"), [{"content": one, "status": "in_progress"} for one in "abc"], items("x" * 100_000)],
    ids=["empty", "equal items", "several in progress", "long"],
)
def test_lists_that_other_designs_refuse_are_taken(todos):
    """An empty list, equal items, several in progress and long content are legal."""
    tracker, send = tracked("ship")
    assert json.loads(send({"todos": todos}).content) == {"todos": todos}
    assert [one._asdict() for one in tracker.todos] == todos


def test_an_item_left_out_is_deleted():
    """Nothing is merged: the new list stands alone."""
    tracker, send = tracked("a", "b", "c")
    send({"todos": items("b")})
    assert tracker.todos == (("b", "pending"),)


def test_a_snapshot_and_its_items_are_immutable():
    """The list is one tuple of frozen items, the same object on each read."""
    tracker, _ = tracked("ship")
    assert type(tracker.todos) is tuple
    assert type(tracker.todos[0]) is TodoItem
    assert tracker.todos is tracker.todos
    assert tracker.view().todos is tracker.todos
    with pytest.raises(AttributeError):
        tracker.todos[0].status = "completed"
    with pytest.raises(AttributeError):
        tracker.view().count = 9
    with pytest.raises(AttributeError):
        tracker.todos = ()


def test_two_calls_in_one_message_run_in_order_and_the_last_valid_one_stands(folder):
    """Each call is answered with its own list; a refused one behind changes nothing."""
    lab = Lab(folder, [[plan("a"), plan("b", "c"), plan("x", status="odd")], say("done")])
    assert [one.result.error for one in lab.settled] == [None, None, "invalid_arguments"]
    assert [one.content for one in lab.agent.todos] == ["b", "c"]


def test_a_list_sent_as_text_is_told_what_to_send():
    """A JSON string in place of the list is refused, with words that say how to send it."""
    tracker, send = tracked("ship")
    before = tracker.todos
    for text in ("[]", json.dumps(items("a")), "", "ship"):
        assert send({"todos": text}) == ToolResult(
            "Error [invalid_arguments]: todo_write was not run. "
            "todos: must be a list, not text: send the list itself, not JSON inside a string.",
            "invalid_arguments",
        )
    assert tracker.todos is before


def test_the_list_and_the_count_live_as_long_as_the_agent(folder):
    """A second run goes on with the list and the count of the first, and nothing is written to disk."""
    model = ScriptedModelClient([plan("ship"), read(), read(), say("one"), read(), say("two")])
    agent = build_agent(P05, model, workspace=folder)
    agent.run("go")
    result = agent.run("again")
    assert agent.todos == (SHIP,)
    assert [REMINDER in str(request.messages) for request in model.requests] == [False] * 5 + [True]
    assert result.rounds[0].before == TodoView((SHIP,), 2)
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    "made",
    [
        plan("a"),
        plan("a", status="odd"),
        call("todo_write", "{"),
        reply(calls=[plan("a")], finish_reason="length"),
        [read(), plan("a")],
    ],
    ids=["taken", "refused", "broken", "cut off", "among others"],
)
def test_the_name_among_the_calls_resets_whatever_came_of_it(made, folder):
    """A call of todo_write sets the count to 0, also one that was refused or cut off."""
    lab = Lab(folder, [read(), read(), made, read(), read(), read(), say("done")])
    assert [one.after.count for one in lab.result.rounds] == [1, 2, 0, 1, 2, 3, 0]
    assert lab.reminders == [0, 0, 0, 0, 0, 0, 1]


# ---- for all inputs ----

contents = st.text(min_size=1, max_size=12).filter(lambda text: any(visible(char) for char in text))
todo = st.fixed_dictionaries({"content": contents, "status": st.sampled_from(TODO_STATUSES)})
LETTERS = "\u034f\u115f\u1160\u2800\u3164\uffa0"
WHITE = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1)))) + "\ufeff"


def visible(char):
    """Whether a reader sees anything of a character."""
    kind = unicodedata.category(char)
    return not (kind[0] == "Z" or kind in ("Cc", "Cf") or char in LETTERS)


@given(st.lists(todo, max_size=50), st.data())
def test_a_line_that_did_not_change_is_the_same_object(before, data):
    """Snapshots share the lines that are in both."""
    after = data.draw(st.lists(st.sampled_from(before) | todo if before else todo, max_size=50))
    tracker, send = tracked()
    send({"todos": before})
    known = {item: item for item in tracker.todos}
    send({"todos": after})
    assert all(type(item) is TodoItem for item in tracker.todos)
    assert all(known.get(item, item) is item for item in tracker.todos)


@given(st.lists(todo, max_size=50))
def test_decoding_a_result_gives_the_snapshot(todos):
    """The result is ASCII but for no character, compact, and decodes to the very list that is kept."""
    tracker, send = tracked("ship")
    result = send({"todos": todos})
    assert result.error is None
    assert result.content.isascii()
    decoded = json.loads(result.content)
    assert list(decoded) == ["todos"]
    assert all(list(one) == ["content", "status"] for one in decoded["todos"])
    assert [tuple(one.values()) for one in decoded["todos"]] == list(tracker.todos)
    assert decoded["todos"] == [{**one, "content": one["content"].strip(WHITE)} for one in todos]
    plain = json.dumps({"todos": [one._asdict() for one in tracker.todos]}, separators=(",", ":"))
    assert result.content == plain.replace("\\u007f", "\x7f")


wrong_items = st.sampled_from(
    [
        5,
        None,
        "ship",
        [],
        {},
        {"content": "a"},
        {"status": "pending"},
        {"content": "", "status": "pending"},
        {"content": "\u200b\u3164 ", "status": "pending"},
        {"content": 5, "status": "pending"},
        {"content": "a", "status": "PENDING"},
        {"content": "a", "status": " pending"},
        {"content": "a", "status": None},
        {"content": "a", "status": "pending", "activeForm": "b"},
    ]
)
wrong_lists = st.tuples(st.lists(todo, max_size=5), wrong_items, st.lists(todo, max_size=5)).map(
    lambda parts: [*parts[0], parts[1], *parts[2]]
)
wrong = st.one_of(
    wrong_lists.map(lambda todos: {"todos": todos}),
    st.integers(51, 60).map(lambda count: {"todos": items(*"x" * count)}),
    st.sampled_from(
        [{}, {"todos": None}, {"todos": {}}, {"todos": "[]"}, {"todo": []}, {"todos": [], "merge": True}, []]
    ),
    st.text(st.characters(exclude_characters="{")).filter(str.strip),
)


@given(st.lists(wrong, min_size=1, max_size=4))
def test_refused_arguments_never_change_a_snapshot(sent):
    """Whatever is refused, however often, the list stays the same object."""
    tracker, send = tracked("ship")
    before = tracker.todos
    for arguments in sent:
        assert send(arguments).error in ("invalid_arguments", "invalid_json")
        assert tracker.todos is before


def test_every_character_is_trimmed_blank_or_kept_as_a_plain_reference_says():
    """Ends lose all of Python's white space and U+FEFF; content of unseen characters only is blank; the rest stays."""
    tracker, send = tracked()
    known = [
        char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) not in ("Cn", "Cs", "Co")
    ]
    assert len(known) > 140_000
    _check(tracker, send, [char for char in known if visible(char)], known)
    for char in known:
        if not visible(char):
            before = tracker.todos
            refused = send({"todos": items(char)})
            assert refused.error == "invalid_arguments", hex(ord(char))
            assert tracker.todos is before


def _check(tracker, send, seen, known):
    """Seen characters are kept alone, all are kept or trimmed at the ends of a text, fifty to a call."""
    for start in range(0, len(seen), 50):
        some = seen[start : start + 50]
        assert send({"todos": items(*some)}).error is None, f"one of {some!r} is called blank"
        assert [one.content for one in tracker.todos] == some
    for start in range(0, len(known), 50):
        some = [f"{char}a{char}b{char}" for char in known[start : start + 50]]
        assert send({"todos": items(*some)}).error is None
        assert [one.content for one in tracker.todos] == [one.strip().strip(WHITE) for one in some]


@given(st.text(st.sampled_from([*WHITE, *LETTERS, "\u200b", "\u2060", "\ue000", "a", "é"]), max_size=8))
def test_content_is_trimmed_at_both_ends_and_blank_is_refused(content):
    """White space goes at the ends only; unseen characters inside real text stay."""
    tracker, send = tracked("ship")
    before = tracker.todos
    result = send({"todos": items(content)})
    if any(map(visible, content)):
        assert tracker.todos == ((content.strip(WHITE), "pending"),)
    else:
        assert result.content.endswith("todos[0].content: must not be blank.")
        assert tracker.todos is before


rounds_of_names = st.lists(
    st.lists(st.sampled_from(["read_file", "glob", "todo_write", "nope"]), max_size=3).map(tuple), max_size=15
)


def reference(rounds):
    """When the reminder is due, in the plainest way: three rounds with calls and no todo_write since the last."""
    due, stale = [], 0
    for names in rounds:
        due.append(stale >= 3)
        stale = 0 if due[-1] else stale
        if names:
            stale = 0 if "todo_write" in names else stale + 1
    return due


@given(rounds_of_names)
def test_the_reminder_follows_its_rule_on_every_sequence_of_rounds(rounds):
    """For any sequence of rounds, text-only ones too, the reminder comes when the rule says so."""
    tracker, _ = tracked()
    said = []
    for names in rounds:
        said.append(tracker.before_model() == (SystemMessage(REMINDER),))
        tracker.record_tool_round(names)
    assert said == reference(rounds)


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(
            st.sampled_from([read(), read("nope.txt"), plan("a"), plan("a", status="odd"), call("nope"), plan()]),
            min_size=1,
            max_size=3,
        ),
        max_size=9,
    )
)
def test_in_a_run_the_reminder_follows_its_rule_and_each_call_has_one_result(folder, script):
    """In any run requests hold the reminder by the rule, last and once, and each call has exactly one result."""
    lab = Lab(folder, [*script, say("done")])
    names = [tuple(one.name for one in calls) for calls in script]
    assert lab.reminders == [int(due) for due in reference([*names, ()])]
    for this, calls in zip(lab.result.rounds, script, strict=False):
        assert [one.call.name for one in this.settled] == [one.name for one in calls]
    assert_paired([message.to_openai() for message in lab.agent.history])
