"""Tools for a model whose server has no place for them: told in the system prompt, called in the reply's text.

Read `told` first: it says in words what a request otherwise says in `tools` and tool messages. `reply_format` is the
grammar that leaves a model no other form than a call or an answer; `heard` turns the text back into a call. A grammar
gives form, not meaning.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from labkit.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage
from labkit.model import SentTool

_HOW = (
    "Reply with one JSON object and nothing else. "
    'To call a tool: {"name": "<tool>", "arguments": {...}}. When the task is done: {"answer": "<what you did>"}.'
)


_BEGUN = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*')
"""How a call begins. Cut off by the length limit it is a call still, and the loop will answer that it was cut off."""


def told(messages: Iterable[Message], tools: Sequence[SentTool], late_system_role: str) -> list[dict[str, Any]]:
    """The messages in the wire form, with tools, calls and results as text. Neighbours of one role are joined."""
    out: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    if tools:
        out.append({"role": "system", "content": "\n".join(["Tools:", *map(_line, tools), _HOW])})
    for index, message in enumerate(messages):
        role, text = "user", message.content
        if isinstance(message, SystemMessage):
            role = late_system_role if index else "system"
        elif isinstance(message, AssistantMessage):
            names.update((call.id, call.name) for call in message.tool_calls)
            role, text = "assistant", "\n".join(map(_said, message.tool_calls)) or _answer(message.content, tools)
        elif isinstance(message, ToolMessage):
            text = f"Result of {names.get(message.tool_call_id, 'a call')}: {message.content}"
        if index == 0 and role == "system" and out:
            out[0]["content"] = f"{text}\n\n{out[0]['content']}"
        elif out and role == out[-1]["role"]:
            out[-1]["content"] += f"\n\n{text}"
        else:
            out.append({"role": role, "content": text})
    return out


def _line(tool: SentTool) -> str:
    sent = tool.to_openai()["function"]
    return f"- {sent['name']}: {sent['description']} Arguments: {json.dumps(sent['parameters'])}"


def _said(call: ToolCall) -> str:
    """A call as the model wrote it, or would have."""
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments}}}'


def _answer(text: str, tools: Sequence[SentTool]) -> str:
    return json.dumps({"answer": text}, ensure_ascii=False) if tools else text


def reply_format(tools: Sequence[SentTool]) -> dict[str, Any]:
    """The `response_format` that allows one call of one of the tools, or an answer, and nothing else."""
    branches = [_closed({"name": {"const": tool.name}, "arguments": _parameters(tool)}) for tool in tools]
    branches.append(_closed({"answer": {"type": "string"}}))
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": {"anyOf": branches}}}


def _parameters(tool: SentTool) -> Any:
    return tool.to_openai()["function"]["parameters"]


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def heard(reply: AssistantMessage) -> AssistantMessage:
    """The reply with the call or the answer that its text holds, cut off or not; else the reply as it is."""
    begun = _BEGUN.match(reply.content) if reply.finish_reason == "length" else None
    if begun:
        return replace(reply, content="", tool_calls=(ToolCall("", begun[1], reply.content[begun.end() :]),))
    found = _object_in(reply.content)
    if isinstance(found.get("name"), str) and "arguments" in found:
        arguments = found["arguments"]
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return replace(reply, content="", tool_calls=(ToolCall("", found["name"], raw),))
    if isinstance(found.get("answer"), str):
        return replace(reply, content=found["answer"])
    return reply


def _object_in(text: str) -> dict[str, Any]:
    """The first JSON object in a text, in a fence or bare; {} for none."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
        else:
            return found if isinstance(found, dict) else {}
    return {}
