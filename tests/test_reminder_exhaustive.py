"""Every sequence of rounds up to a length, against a reference of a few lines, for each design of the list.

A sequence is a word over six letters: o (another tool), a (an accepted update), r (a refused one), d (a denied one),
b (another tool and an accepted update in one message), t (text only, which ends a run: the next prompt goes on).
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import (
    P05,
    AssistantMessage,
    Rule,
    ToolCall,
    ToolDefinition,
    ToolInput,
    ToolRegistry,
    ToolResult,
    build_agent,
    say,
)
from labkit.todos import TODO_STALE_REMINDER, TodoTracker

LETTERS = "oardbt"


class Nothing(ToolInput):
    """No arguments."""


class P05Design:
    """The list of this lab: an agent's count, a reminder for one request."""

    tracker, tool, field, reminder = TodoTracker, "todo_write", "todos", TODO_STALE_REMINDER
    per_run, stays, reset_by_reminder = False, False, True


class Day55Design:
    """A run's count, a reminder that stays."""

    tool, field, reminder = "todo_write", "todos", "<reminder>Update your todos.</reminder>"
    per_run, stays, reset_by_reminder = True, True, True

    @staticmethod
    def tracker():
        return pytest.importorskip("labkit.designs.day55").TodoManager()


class S03Design:
    """A run's count, a reminder that stays and comes again each round."""

    tool, field, reminder = "todo", "items", "<reminder>Update your todos.</reminder>"
    per_run, stays, reset_by_reminder = True, True, False

    @staticmethod
    def tracker():
        return pytest.importorskip("labkit.designs.s03").TodoManager()


designs = pytest.mark.parametrize("design", [P05Design, Day55Design, S03Design])


class Reference:
    """What each request must show: the whole of the three rules."""

    def __init__(self, design):
        self.design, self.count, self.kept = design, 0, 0

    def request(self):
        """The copies of the reminder that are visible in the next request."""
        if self.design.stays or self.count < 3:
            return self.kept
        self.count = 0
        return self.kept + 1

    def round(self, letter):
        """A round of this kind is over."""
        if letter == "t":
            self.count = 0 if self.design.per_run else self.count
            return
        self.count = self.count + 1 if letter == "o" else 0
        if self.design.stays and self.count >= 3:
            self.kept += 1
            self.count = 0 if self.design.reset_by_reminder else self.count


def list_of(design, content, status="pending"):
    """The arguments of an update with one item that all three designs can read."""
    item = {"content": content, "text": content, "id": "1", "status": status}
    wanted = ("id", "text", "status") if design is S03Design else ("content", "status")
    return json.dumps({design.field: [{key: item[key] for key in wanted}]})


def replies_of(design):
    """A reply for each letter."""
    other = ToolCall("c1", "other")
    accepted, refused, denied = (
        ToolCall("c2", design.tool, list_of(design, content, status))
        for content, status in (("accepted", "pending"), ("refused", "failed"), ("denied", "pending"))
    )
    calls = {"o": [other], "a": [accepted], "r": [refused], "d": [denied], "b": [other, accepted]}
    return {letter: AssistantMessage("", tuple(calls[letter])) for letter in calls} | {"t": say("text")}


class Word:
    """A model that says the letters it is given, then text; it counts the reminders in each request."""

    def __init__(self, design, letters=""):
        self.replies, self.reminder = replies_of(design), design.reminder
        self.letters, self.seen = list(letters), []

    def complete(self, request):
        self.seen.append(sum(1 for message in request.messages if message.content == self.reminder))
        return self.replies[self.letters.pop(0) if self.letters else "t"]


OTHER = ToolDefinition("other", "Does nothing.", Nothing, "read", lambda given: ToolResult("ok"))
NO = Rule("not this one", "deny", lambda prepared: "denied" in prepared.call.arguments)


def agent_of(design, model, folder, **parts):
    """A whole agent with this design's tracker, and the tracker."""
    tracker = design.tracker()
    parts |= {"workspace": folder, "tools": [OTHER], "rules": [NO], "todos": tracker}
    return build_agent(P05, model, **parts), tracker


def expected_of(design, letters):
    """The copies that the reference sees in each request of a word, and in the one behind it."""
    reference, expected = Reference(design), []
    for letter in letters:
        expected.append(reference.request())
        reference.round(letter)
    return [*expected, reference.request()]


class Walk:
    """Every word to a depth through one agent: back at a shorter word, history, list and count are put back.

    A run that waits between two rounds goes on from what it finds, so a word's beginning is run once for all the words
    that begin so. `test_words_through_an_agent_of_their_own` shows that this walk tells no other story.
    """

    def __init__(self, design, folder, depth):
        self.model, self.depth, self.design = Word(design), depth, design
        self.agent, self.tracker = agent_of(design, self.model, folder, max_rounds=10**9)
        self.reference, self.wrong, self.words, self.run = Reference(design), [], 0, None

    def saved(self):
        return len(self.agent.history), vars(self.tracker).copy(), self.reference.count, self.reference.kept

    def put_back(self, saved):
        length, tracker, self.reference.count, self.reference.kept = saved
        del self.agent._history[length:]
        self.agent._paired = min(self.agent._paired, length)
        vars(self.tracker).update(tracker)

    def say(self, letter):
        """One round of this kind. A run that text ended is begun anew by the next round."""
        self.model.letters = [letter]
        self.run = self.run or self.agent.rounds("go on")
        next(self.run)
        if letter == "t":
            self.run = None

    def in_mid_run(self):
        """A run that waits between two rounds, whatever it did so far: its round is taken back by who asked."""
        if self.run is None:
            self.say("a")

    def descend(self, word, running, updated):
        if len(word) > self.depth:
            return
        saved = self.saved()
        visible = self.reference.request()
        counted = self.reference.count
        for letter in LETTERS if len(word) < self.depth else "t":
            if running:
                self.in_mid_run()
            else:
                self.run = None
            self.put_back(saved)
            self.reference.count = counted
            self.say(letter)
            if self.model.seen.pop() != visible:
                self.wrong.append(word + letter)
            self.reference.round(letter)
            now_updated = updated or letter in "ab"
            if bool(self.agent.todos) != now_updated:
                self.wrong.append(word + letter)
            self.words += 1
            self.descend(word + letter, letter != "t", now_updated)


@designs
def test_every_sequence_of_six_rounds_through_the_whole_agent(design, tmp_path):
    """For each of the 6^6 words the reminders visible in each of its requests, and the list, are the reference's."""
    walk = Walk(design, tmp_path, 6)
    walk.descend("", False, False)
    assert walk.wrong == []
    assert walk.words == sum(6**length for length in range(1, 7)) + 6**6


@designs
@settings(deadline=None, max_examples=150)
@given(letters=st.text(LETTERS, min_size=1, max_size=12))
def test_words_through_an_agent_of_their_own(design, tmp_path_factory, letters):
    """Longer words, each through an agent that nobody touches, show the same."""
    model = Word(design, letters)
    agent, tracker = agent_of(design, model, tmp_path_factory.getbasetemp())
    while len(model.seen) <= len(letters):
        agent.run("go on")
    assert model.seen[: len(letters) + 1] == expected_of(design, letters)
    assert bool(tracker.todos) == (not {"a", "b"}.isdisjoint(letters))


@designs
def test_every_sequence_of_eight_rounds_at_the_tracker(design):
    """Depth first, the tracker says what the reference says after each of up to eight rounds.

    A refused and a denied call are one letter here: to a tracker both are a name, and no list.
    """
    tracker = design.tracker()
    tool = tracker.tool_definition
    accepted = ToolRegistry((tool,)).prepare(ToolCall("c", tool.name, list_of(design, "accepted")))
    names = {"o": ("other",), "a": (tool.name,), "d": (tool.name,), "b": ("other", tool.name), "t": ()}
    own, reference, wrong = vars(tracker), Reference(design), []

    def descend(word, kept):
        if kept + len(tracker.before_model()) != reference.request() or tracker.view().count != reference.count:
            wrong.append(word)
        if len(word) == 8:
            return
        before, count = own.copy(), reference.count
        for letter in names:
            if letter in "ab":
                tool.handler(accepted.input)
            added = tracker.record_tool_round(names[letter])
            if letter == "t":
                tracker.begin_run()
            reference.round(letter)
            descend(word + letter, kept + len(added))
            own.update(before)
            reference.count, reference.kept = count, kept

    tracker.begin_run()
    descend("", 0)
    assert wrong == []


@designs
def test_ten_requests_without_an_update(design, tmp_path):
    """Copies of the reminder visible in requests 1 to 10 with no update at all, as published for each design."""
    model = Word(design, "o" * 9)
    agent, _ = agent_of(design, model, tmp_path)
    agent.run("go")
    row = {"P05Design": "0001001001", "Day55Design": "0001112223", "S03Design": "0001234567"}[design.__name__]
    assert "".join(map(str, model.seen)) == row


@designs
def test_a_round_without_names_changes_nothing(design):
    """record_tool_round of no names leaves the count as it was, at any count."""
    tracker = design.tracker()
    for _ in range(3):
        before = tracker.view()
        assert tuple(tracker.record_tool_round(())) == ()
        assert tracker.view() == before
        tracker.record_tool_round(("other",))


@designs
def test_three_calls_in_one_message_count_one(design):
    """The count is of rounds and not of calls."""
    tracker = design.tracker()
    tracker.record_tool_round(("other",) * 3)
    assert tracker.view().count == 1
