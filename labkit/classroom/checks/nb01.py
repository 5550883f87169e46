"""Notebook 01, a model with no memory: which request knows what."""

from typing import Any

from labkit.classroom.checks.common import function_wanted, require
from labkit.messages import AssistantMessage, SystemMessage, UserMessage
from labkit.model import MessageView, ModelRequest


def _request(*messages: Any) -> ModelRequest:
    return ModelRequest(MessageView(list(messages)))


NAME, QUESTION = UserMessage("My name is Ada."), UserMessage("What is my name?")


def check_01_1(knows: Any) -> None:
    """knows(request, word): does any message of the request hold the word?"""
    function_wanted(knows)
    require(knows(_request(NAME), "Ada"), "finds_it")
    require(not knows(_request(QUESTION), "Ada"), "not_there")
    require(not knows(_request(NAME), "Ben"), "not_there")
    require(knows(_request(NAME, AssistantMessage("Hello."), QUESTION), "Ada"), "all_messages")
    require(knows(_request(UserMessage("Hi."), AssistantMessage("Hello, Ada."), QUESTION), "Ada"), "all_roles")
    require(knows(_request(SystemMessage("The person is Ada."), QUESTION), "Ada"), "all_roles")
    require(not knows(_request(), "Ada"), "empty_request")
    require(all(type(knows(_request(one), "Ada")) is bool for one in (NAME, QUESTION)), "true_or_false")


def check_01_2(who_knows: Any) -> None:
    """For each of four requests: can the model know the name?"""
    whole = isinstance(who_knows, dict) and set(who_knows) == {1, 2, 3, 4}
    require(whole and all(type(one) is bool for one in who_knows.values()), "shape", wanted="four_bools")
    require(who_knows[1], "it_is_there")
    require(not who_knows[2], "nothing_is_kept")
    require(who_knows[3], "system_counts")
    require(who_knows[4], "replies_count")
