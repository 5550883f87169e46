"""The floors: bare loops in one function.

b0   pydantic TypeAdapter.validate_json of a TypedDict, json.dumps, list append; the live list goes to the model
b1   the tutorial loop: json.loads, checks by hand, json.dumps, list append
b2   b0, and each request gets its own tuple of the messages, dropped after the call
b2k  b2, and the fake model keeps every request (a recording test double)
h1   b0, and each request is encoded whole with json.dumps (what a plain HTTP client pays)
h2   b0, and each request is joined from fragments that were encoded once
h3   b0, and each request is two pieces: a view of a buffer that only grows, and the closing brackets
"""

from __future__ import annotations

import json
from typing import Annotated

from common import Adapter, Outcome, TodoItem, count, hand_checked
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict
from workloads import MAX_ITEMS, NOTE, SYSTEM, TASK, Script

IMPORT = "import json, pydantic; pydantic.TypeAdapter"


class WriteArgs(TypedDict):
    todos: Annotated[list[TodoItem], Field(max_length=MAX_ITEMS)]


class ReadArgs(TypedDict):
    path: str


def _outcome(messages: list[dict]) -> Outcome:
    return count(messages[-1]["content"], [m["content"] for m in messages if m["role"] == "tool"])


def _model(script: Script, variant: str):
    """How the request reaches the fake model."""
    kept: list = []
    respond = script.next
    if variant == "b2":

        def model(messages):
            request = tuple(messages)  # noqa: F841 - held while the model runs
            return respond()

    elif variant == "b2k":

        def model(messages):
            if len(messages) == 2:
                kept.clear()
            kept.append(tuple(messages))
            return respond()

    elif variant == "h1":
        dumps = json.dumps

        def model(messages):
            body = dumps({"model": "m", "messages": messages}).encode()  # noqa: F841
            return respond()

    elif variant == "h2":
        dumps = json.dumps

        def model(messages):
            if len(messages) == 2:
                kept.clear()
            for message in messages[len(kept) :]:
                kept.append(dumps(message))
            body = ('{"model": "m", "messages": [' + ", ".join(kept) + "]}").encode()  # noqa: F841
            return respond()

    elif variant == "h3":
        dumps = json.dumps
        head = b'{"model": "m", "messages": ['
        body = bytearray(head)
        seen = 0

        def model(messages):
            nonlocal seen
            if len(messages) == 2:
                body[:] = head
                seen = 0
            for message in messages[seen:]:
                if seen:
                    body.extend(b", ")
                body.extend(dumps(message).encode())
                seen += 1
            with memoryview(body) as view:
                pieces = (view, b"]}")  # noqa: F841 - what sendmsg or an iterable body would take
                return respond()

    else:

        def model(messages):
            return respond()

    return model


def build(script: Script, workload: str, variant: str) -> Adapter:
    model = _model(script, variant)
    dumps = json.dumps
    loads = json.loads

    if variant == "b1":

        def todo_write(args):
            return dumps(hand_checked(args["todos"]))

        def read_note(args):
            if not isinstance(args["path"], str):
                raise ValueError("path must be a string")
            return NOTE

        tools = {"todo_write": todo_write, "read_note": read_note}

        def run():
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
            while True:
                message = model(messages)
                messages.append(message)
                calls = message.get("tool_calls")
                if not calls:
                    return messages
                for call in calls:
                    function = call["function"]
                    try:
                        content = tools[function["name"]](loads(function["arguments"]))
                    except Exception as error:
                        content = f"Error: {error}"
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})

        return Adapter(run, _outcome)

    write_args = TypeAdapter(WriteArgs).validate_json
    read_args = TypeAdapter(ReadArgs).validate_json

    def run():
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        append = messages.append
        while True:
            message = model(messages)
            append(message)
            calls = message.get("tool_calls")
            if not calls:
                return messages
            for call in calls:
                function = call["function"]
                try:
                    if function["name"] == "todo_write":
                        content = dumps(write_args(function["arguments"])["todos"])
                    else:
                        read_args(function["arguments"])
                        content = NOTE
                except ValidationError as error:
                    content = f"Error: {error}"
                append({"role": "tool", "tool_call_id": call["id"], "content": content})

    return Adapter(run, _outcome)
