"""openai-agents Runner with function_tool; tracing off.

plain     a minimal Model subclass
scripted  the library's own agents.testing.ScriptedModel, which deep-copies the whole input at each call
"""

from __future__ import annotations

import asyncio
import os

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import common
from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from common import Adapter, Outcome, TodoItem, count
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from workloads import SYSTEM, TASK, Script

set_tracing_disabled(True)
IMPORT = "from agents import Agent, Runner, function_tool"


def to_output(message: dict) -> list:
    calls = message.get("tool_calls")
    if calls:
        return [
            ResponseFunctionToolCall(
                id=c["id"],
                call_id=c["id"],
                type="function_call",
                name=c["function"]["name"],
                arguments=c["function"]["arguments"],
            )
            for c in calls
        ]
    text = ResponseOutputText(text=message["content"], type="output_text", annotations=[])
    return [ResponseOutputMessage(id="m", type="message", role="assistant", content=[text], status="completed")]


class FakeModel(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, *args, **kwargs) -> ModelResponse:
        return ModelResponse(output=to_output(self.script.next()), usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


@function_tool
def todo_write(todos: list[TodoItem]) -> str:
    """Replace the list."""
    return common.write_todos(todos)


@function_tool
def read_note(path: str) -> str:
    """Read a note."""
    return common.read_note(path)


def outcome(result) -> Outcome:
    contents = [
        str(item["output"])
        for item in result.to_input_list()
        if isinstance(item, dict) and item.get("type") == "function_call_output"
    ]
    return count(result.final_output, contents)


def build(script: Script, workload: str, variant: str) -> Adapter:
    def model():
        if variant == "scripted":
            from agents.testing import ModelStep, ScriptedModel

            total = len(script.responses)
            step = ModelStep.respond(lambda call: to_output(script.next()))
            return ScriptedModel([step] * total)
        return FakeModel(script)

    async def converse():
        agent = Agent(name="bench", instructions=SYSTEM, tools=[todo_write, read_note], model=model())
        return await Runner.run(agent, TASK, max_turns=10_000_000)

    return Adapter(lambda: asyncio.run(converse()), outcome)
