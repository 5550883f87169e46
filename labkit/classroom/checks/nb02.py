"""Notebook 02, the history: append a round, tell whether a history is paired."""

from typing import Any

from labkit.classroom.checks.common import function_wanted, require
from labkit.errors import PairingError
from labkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from labkit.model import check_pairing


def _asks(*ids: str) -> AssistantMessage:
    return AssistantMessage("", tuple(ToolCall(one, "read_file", '{"path": "a.txt"}') for one in ids))


def check_02_1(append_round: Any) -> None:
    """append_round(history, reply, results): the reply and its results at the end, each with its id."""
    function_wanted(append_round)
    start: list[Any] = [UserMessage("Read a and b."), _asks("c1"), ToolMessage("c1", "a")]
    history = list(start)
    reply = _asks("x7", "x3")
    append_round(history, reply, ["first", "second"])
    require(len(history) > 3, "grows_in_place")
    require(len(history) >= 3 and all(a is b for a, b in zip(history, start, strict=False)), "old_messages_stay")
    require(reply in history, "reply_is_there")
    require(history[3] is reply, "reply_first")
    added = history[4:]
    require(len(added) == 2 and all(isinstance(one, ToolMessage) for one in added), "one_result_each", count=len(added))
    require([one.tool_call_id for one in added] == ["x7", "x3"], "ids")
    require([one.content for one in added] == ["first", "second"], "order")
    check_pairing(history)
    answer = AssistantMessage("Done.")
    append_round(history, answer, [])
    require(history[-1] is answer and len(history) == 7, "text_only")


def check_02_2(is_paired: Any) -> None:
    """is_paired(messages): True exactly where check_pairing has nothing to say."""
    function_wanted(is_paired)
    user, done = UserMessage("And?"), AssistantMessage("Done.")
    one, two = ToolMessage("c1", "1"), ToolMessage("c2", "2")
    cases: list[tuple[str, list[Any]]] = [
        ("accepts_right_ones", []),
        ("accepts_right_ones", [user, done]),
        ("accepts_right_ones", [user, _asks("c1"), one, done]),
        ("accepts_right_ones", [user, _asks("c1", "c2"), one, two, user]),
        ("accepts_right_ones", [user, _asks("c1"), one, _asks("c1"), one]),
        ("missing_result", [user, _asks("c1")]),
        ("missing_result", [user, _asks("c1", "c2"), one]),
        ("result_without_call", [user, one, done]),
        ("result_without_call", [user, _asks("c1"), one, one]),
        ("wrong_id", [user, _asks("c1"), two]),
        ("right_behind", [user, _asks("c1"), user, one]),
        ("right_behind", [user, one, _asks("c1")]),
        ("in_order", [user, _asks("c1", "c2"), two, one]),
    ]
    for failed, messages in cases:
        try:
            check_pairing(messages)
            right = True
        except PairingError:
            right = False
        require(bool(is_paired(list(messages))) is right, failed)
    require(type(is_paired([user])) is bool, "true_or_false")
