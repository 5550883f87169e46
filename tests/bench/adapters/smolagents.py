"""smolagents ToolCallingAgent with a fake model; logging off.

It has no pydantic: its own check is by JSON type ("array"), so the tool checks items by hand, as users must. A refused
call is an error of the step; the final answer is its final_answer tool.
"""

from __future__ import annotations

import json
from typing import ClassVar

import common
from common import Adapter, Outcome, count, hand_checked
from smolagents import LogLevel, Tool, ToolCallingAgent
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
    TokenUsage,
)
from workloads import TASK, Script

IMPORT = "from smolagents import Tool, ToolCallingAgent"


class FakeModel(Model):
    def __init__(self, script: Script) -> None:
        super().__init__(model_id="fake")
        self.script = script

    def generate(self, messages, stop_sequences=None, response_format=None, tools_to_call_from=None, **kwargs):
        response = self.script.next()
        calls = response.get("tool_calls")
        if not calls:
            arguments = json.dumps({"answer": response["content"]})
            calls = [{"id": "final", "type": "function", "function": {"name": "final_answer", "arguments": arguments}}]
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=response["content"],
            tool_calls=[
                ChatMessageToolCall(
                    id=c["id"],
                    type="function",
                    function=ChatMessageToolCallFunction(
                        name=c["function"]["name"], arguments=c["function"]["arguments"]
                    ),
                )
                for c in calls
            ],
            token_usage=TokenUsage(input_tokens=0, output_tokens=0),
        )


class TodoWrite(Tool):
    name = "todo_write"
    description = "Replace the list."
    inputs: ClassVar = {"todos": {"type": "array", "description": "Items with content and status."}}
    output_type = "string"

    def forward(self, todos):
        return common.write_todos(hand_checked(todos))


class ReadNote(Tool):
    name = "read_note"
    description = "Read a note."
    inputs: ClassVar = {"path": {"type": "string", "description": "Path."}}
    output_type = "string"

    def forward(self, path):
        return common.read_note(path)


def outcome(raw) -> Outcome:
    text, agent = raw
    contents: list[str] = []
    for step in agent.memory.steps:
        names = [c.name for c in getattr(step, "tool_calls", None) or ()]
        if getattr(step, "error", None):
            contents.append("refused")
        elif "final_answer" not in names and names:
            # One string holds all observations of a step.
            contents.extend([common.NOTE] * names.count("read_note"))
            contents.extend(["[{"] * names.count("todo_write"))
            seen = step.observations
            assert seen.count(common.NOTE) == names.count("read_note")
            assert seen.count('[{"content"') == names.count("todo_write")
    return count(text, contents)


def build(script: Script, workload: str, variant: str) -> Adapter:
    def run():
        agent = ToolCallingAgent(
            tools=[TodoWrite(), ReadNote()],
            model=FakeModel(script),
            max_steps=10_000_000,
            verbosity_level=LogLevel.OFF,
        )
        return agent.run(TASK), agent

    return Adapter(run, outcome)
