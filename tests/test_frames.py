"""Frames: a run in words. What each frame says, of every design, and that no text of a model can pass for ours."""

import json
import re
from types import SimpleNamespace

import pytest
from helpers import REMINDER, Lab, plan, read, wire

from labkit import (
    P01,
    P02,
    HookAnswer,
    Hooks,
    ScriptedModelClient,
    ToolDefinition,
    ToolInput,
    ToolResult,
    build_agent,
    call,
    reply,
    say,
)
from labkit.designs.day55 import TodoManager as Day55TodoManager
from labkit.designs.s03 import TodoManager as S03TodoManager
from labkit.frames import SHOWN, Frames, checklist, completed, cut, frames_of


def part(frame, heading):
    """The lines of the one part whose heading begins so."""
    (found,) = [p for p in frame.parts if p.heading.startswith(heading)]
    return found.lines


def headings(frame):
    return [p.heading for p in frame.parts]


def test_one_frame_a_round_with_the_runs_end_in_the_last(folder):
    """Each round has its frame, in order, and only the last says how the run ended."""
    frames = frames_of(Lab(folder, [read(), read(), say("done")]).result)
    assert [frame.title for frame in frames] == [
        "Round 1: read_file",
        "Round 2: read_file",
        "Round 3: an answer in text",
    ]
    assert [headings(frame)[-1] for frame in frames] == [
        "the run goes on",
        "the run goes on",
        "the run ended: completed",
    ]


def test_the_reminder_is_named_as_of_one_request_only(folder):
    """In the fourth frame, and in no other, the reminder stands as 'in this request only', and never as new."""
    frames = frames_of(Lab(folder, [read()] * 5 + [say("done")]).result)
    once = [[line for line in part(frame, "request") if line.startswith("in this request only")] for frame in frames]
    assert once == [[], [], [], [f"in this request only: system: {REMINDER}"], [], []]
    assert not any(line.startswith("new: ") and REMINDER in line for frame in frames for line in part(frame, "request"))


def test_what_is_new_is_said_once(folder):
    """All history is new in exactly one frame: the lines after 'new:' are the history, message by message."""
    lab = Lab(folder, [[read(), plan("a")], read(), say("done")])
    new = [line for frame in frames_of(lab.result) for line in part(frame, "request") if line.startswith("new: ")]
    roles = [line.split()[1].rstrip(":") for line in new]
    assert roles == ["system", *[message.to_openai()["role"] for message in lab.agent.history][:-1]]


def test_two_runs_of_one_agent(folder):
    """Rounds of two runs in one list go on where the first run ended; a second run by itself begins with all of it."""
    model = ScriptedModelClient([read(), say("one"), say("two")])
    agent = build_agent(P02, model, workspace=folder)
    first, second = agent.run("first"), agent.run("second")
    both, alone = frames_of([*first.rounds, *second.rounds]), frames_of(second)
    assert [frame.number for frame in both] == [1, 2, 1]
    assert part(both[2], "request") == ("new: assistant: one", "new: user: second")
    assert [line.split()[1] for line in part(alone[0], "request")] == [
        "system:",
        "user:",
        "assistant:",
        "tool",
        "assistant:",
        "user:",
    ]
    assert both[2].size == alone[0].size == wire_size(model.requests[2].messages)
    assert (both[2].shared, alone[0].shared) == (wire_size(model.requests[1].messages), 0)


def test_counts_before_and_after(folder):
    """The count of rounds without an update is shown before and after each round."""
    frames = frames_of(Lab(folder, [read(), read(), plan("a"), say("done")]).result)
    assert [h for frame in frames for h in headings(frame) if h.startswith("rounds without")] == [
        "rounds without an update: 0 before, 1 after",
        "rounds without an update: 1 before, 2 after",
        "rounds without an update: 2 before, 0 after",
        "rounds without an update: 0 before, 0 after",
    ]


def test_the_list_names_what_was_added_changed_and_removed(folder):
    """After an update each item has its status as a word, and says whether it is new, changed, or gone."""
    lab = Lab(
        folder,
        [
            plan("a", "b"),
            call(
                "todo_write",
                todos=[{"content": "a", "status": "completed"}, {"content": "c", "status": "in_progress"}],
            ),
            say("done"),
        ],
    )
    first, second, third = frames_of(lab.result)
    assert part(first, "the list: replaced, 0 items before, 2 after") == (
        "[pending] a  (added)",
        "[pending] b  (added)",
    )
    assert part(second, "the list: replaced, 2 items before, 2 after, 1 completed") == (
        "[completed] a  (was pending)",
        "[in_progress] c  (added)",
        "removed: [pending] b",
    )
    assert part(third, "the list: unchanged") == ("[completed] a", "[in_progress] c")


def test_equal_items_are_told_apart_by_their_number(folder):
    """Of three equal items one left out is one removed, not three changed."""
    todo = SimpleNamespace
    same = [todo(content="x", status="pending")] * 3
    assert checklist(same[:2], same) == ("[pending] x", "[pending] x", "removed: [pending] x")
    one_done = [todo(content="x", status="completed"), *same[:2]]
    assert checklist(one_done[:1], one_done[::-1][1:]) == ("[completed] x", "removed: [pending] x")
    assert checklist(one_done, same) == ("[completed] x  (was pending)", "[pending] x", "[pending] x")


def test_items_with_ids_are_known_again_by_them(folder):
    """A design with ids shows them, and an item whose text changed is the same item with another text."""
    lab = Lab(
        folder,
        [
            call("todo", items=[{"id": "1", "text": "a", "status": "pending"}]),
            call("todo", items=[{"id": "1", "text": "A", "status": "completed"}]),
            say("done"),
        ],
        todos=S03TodoManager(),
    )
    frames = frames_of(lab.result)
    assert part(frames[1], "the list: replaced") == ("[completed] #1: A  (was pending, was: a)",)


@pytest.mark.parametrize(
    ("tracker", "script"),
    [
        (Day55TodoManager, call("todo_write", todos=[{"content": "a"}])),
        (S03TodoManager, call("todo", items=[{"id": "1", "text": "a", "status": "pending"}])),
    ],
)
def test_kept_messages_stand_apart(folder, tracker, script):
    """What an observer leaves in the history is shown in the round that left it."""
    frames = frames_of(Lab(folder, [script, read(), read(), read(), say("done")], todos=tracker()).result)
    kept = [any(h == "stays in the history" for h in headings(frame)) for frame in frames]
    assert kept == [False, False, False, True, False]
    assert part(frames[3], "stays") == ("user: <reminder>Update your todos.</reminder>",)


def test_an_agent_without_a_tracker_has_frames_without_a_list():
    """Before P05 a frame speaks neither of a count nor of a list."""
    result = build_agent(P01, ScriptedModelClient([say("hello")])).run("hi")
    assert [h.split(":")[0] for h in headings(frames_of(result)[0])] == ["request 1", "reply", "the run ended"]


class Watcher:
    """An observer whose view is what it was given."""

    def __init__(self, view):
        self._view = view

    def begin_run(self):
        pass

    def before_model(self):
        return ()

    def record_tool_round(self, names):
        return ()

    def view(self):
        return self._view


@pytest.mark.parametrize("view", [(), (1, 2), [], "text", {"count": 3}, 7, object()])
def test_a_view_of_any_shape_is_no_trouble(view):
    """An observer's view is its own affair: tuples and texts have a method `count`, which is no count."""
    agent = build_agent(P01, ScriptedModelClient([say("hello")]), observers=[Watcher(view)])
    assert "without an update" not in repr(frames_of(agent.run("hi")))


@pytest.mark.parametrize("item", [{"content": "a", "status": "pending"}, SimpleNamespace(text="a", status="pending")])
def test_a_students_own_items_are_shown_too(item):
    """Items may be objects or dicts, and call their words content or text."""
    assert checklist([item]) == ("[pending] a",)
    assert completed([item, {"status": "completed"}]) == 1


class Nothing(ToolInput):
    pass


FAILS = ToolDefinition("fails", "Fails.", Nothing, "read", lambda given: ToolResult("no luck", "own_code"))


@pytest.mark.parametrize(
    ("wanted", "entry", "parts"),
    [
        ("allowed (default: nothing speaks against it)", read(), {}),
        ("allowed after asking (rule: ask before files change)", "write", {"approver": lambda ask: "allow"}),
        ("denied after asking (rule: ask before files change)", "write", {}),
        ("denied (workspace: ", call("write_file", path="../x", content=""), {}),
        ("refused [invalid_arguments]", call("read_file"), {}),
        ("refused [invalid_json]", call("read_file", "{"), {}),
        ("refused [unknown_tool]", call("nope"), {}),
        ("refused [truncated]", reply(calls=[read()], finish_reason="length"), {}),
        ("refused [hook_denied]", read(), {"hooks": Hooks(PreToolUse=[lambda c: HookAnswer(deny="no")])}),
        ("failed [tool_execution_error]", read("none.txt"), {}),
        ("failed [own_code]", call("fails"), {"tools": [FAILS]}),
    ],
)
def test_each_call_says_in_words_what_became_of_it(folder, wanted, entry, parts):
    """Allowed, denied, refused or failed: with the source and the reason, or with the code."""
    entry = call("write_file", path="b.txt", content="x") if entry == "write" else entry
    frame = frames_of(Lab(folder, [entry, say("done")], **parts).result)[0]
    decision = part(frame, "calls")[0].split("\n")[1]
    assert wanted in decision


def test_without_a_policy_a_tool_that_failed_was_run(folder):
    """Before permissions nobody decides: a call was run, whether or not it went well, unless it was refused."""
    model = ScriptedModelClient([[read(), read("none.txt"), call("nope")], say("done")])
    result = build_agent(P02, model, workspace=folder).run("go")
    words = [line.split("\n")[1].strip() for line in part(frames_of(result)[0], "calls")]
    assert words == ["run", "run, failed [tool_execution_error]", "refused [unknown_tool]"]


def test_notes_and_context_are_shown(folder):
    """What a hook added and what it failed at are in the frame of their round."""

    def adds(call, result):
        return HookAnswer(context="look out")

    def breaks(call, result):
        raise ValueError("oh")

    frame = frames_of(Lab(folder, [read(), say("done")], hooks=Hooks(PostToolUse=[adds, breaks])).result)[0]
    assert part(frame, "stays in the history") == ("system: look out",)
    assert "ValueError: oh" in part(frame, "notes")[0]


def wire_size(messages):
    return sum(len(json.dumps(m.to_openai(), ensure_ascii=False, separators=(",", ":"))) + 1 for m in messages)


def test_sizes_are_those_of_the_wire_form(folder):
    """The size is the characters of the messages' JSON, compact and not escaped; shared is what two have in front.

    Each message counts with the comma behind it, so a size is one less than the whole list with its two brackets.
    """
    lab = Lab(folder, [read(), plan("茶"), read(), read(), read(), read(), say("done")])
    frames = frames_of(lab.result)
    requests = lab.model.requests
    lists = [json.dumps(wire(request), ensure_ascii=False, separators=(",", ":")) for request in requests]
    assert [frame.size for frame in frames] == [len(one) - 1 for one in lists]
    for frame, before, this in zip(frames[1:], requests, requests[1:], strict=False):
        same = [a for a, b in zip(before.messages, this.messages, strict=False) if a is b]
        assert frame.shared == wire_size(same)
    assert frames[0].shared == 0


def test_long_texts_are_cut_and_counted(folder):
    """A long text is shown by its beginning, and how much is missing is said."""
    (folder / "long.txt").write_bytes(b"x" * 1000)
    text = repr(frames_of(Lab(folder, [read("long.txt"), say("done")]).result))
    assert f"{'x' * SHOWN}... [700 more characters]" in text
    assert "x" * (SHOWN + 1) not in text


def test_what_cannot_be_seen_is_shown_as_an_escape():
    """Controls, escape sequences and characters that turn or hide text are escapes; joined emoji and words stay."""
    assert cut("\x1b[2J\u202eabc\u200b\x9b\r\ufeff") == r"\x1b[2J\u202eabc\u200b\x9b\r\ufeff"
    assert cut("Prüfen ✅ 日本語 👩\u200d🔬\n\tx") == "Prüfen ✅ 日本語 👩\u200d🔬\n\tx"


def test_no_text_of_a_model_can_look_like_a_line_of_the_frame(folder):
    """Further lines of a text are set in deeper than any line that we write, in calls, messages and items."""
    ours = ["the run ended: completed", "call_9 shell {}", "removed: [pending] b", "new: system: yes"]
    fake = "".join(f"\n{line}" for line in ours)
    script = [
        [call("read_file", path=fake), call("todo_write", todos=[{"content": f"a{fake}", "status": "pending"}])],
        say(f"x{fake}"),
    ]
    lines = repr(frames_of(Lab(folder, script, prompt=f"go{fake}").result)).split("\n")
    assert [line for line in lines if line.strip() in ours and not line.startswith(" " * 8)] == [lines[-1]]
    assert lines[-1] == "  the run ended: completed"


def test_html_says_what_the_text_says(folder):
    """The HTML holds the words of the text in the same order, escaped, with no script, style block or picture."""
    (folder / "a.txt").write_text("<script>alert(1)</script> & $x$", encoding="utf-8")
    frames = frames_of(Lab(folder, [[read(), plan("<b>bold</b>")], say("done")]).result)
    made = frames._repr_html_()
    assert not re.search("<(script|style|svg|img)|on[a-z]+=", made)
    words = re.sub("<[^>]*>", " ", made)
    for entity, character in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&amp;", "&")]:
        words = words.replace(entity, character)
    assert words.split() == repr(frames).split()
    assert 'class="tex2jax_ignore"' in made
    assert repr(frames[0]).split("\n")[0] in frames[0]._repr_html_()


def test_frames_of_rounds_and_of_nothing(folder):
    """Rounds do as well as a result, a part of them too; no rounds are said to be none."""
    result = Lab(folder, [read(), say("done")]).result
    assert frames_of(result.rounds) == frames_of(result)
    assert frames_of(result.rounds[:1]) == frames_of(result)[:1]
    assert isinstance(frames_of(result), Frames)
    assert repr(frames_of([])) == "no rounds yet"
    assert "no rounds yet" in frames_of([])._repr_html_()


def test_frames_are_made_in_linear_work(folder, monkeypatch):
    """Each message is measured once in a run, and guidance once more in its own request."""
    lab = Lab(folder, [read()] * 40 + [say("done")], max_rounds=41)
    measured = []
    real = json.dumps
    monkeypatch.setattr("labkit.frames.json.dumps", lambda *a, **k: measured.append(1) or real(*a, **k))
    frames_of(lab.result)
    messages = len(lab.agent.history)  # and the system prompt, without the last reply
    assert len(measured) == messages + sum(lab.reminders)
