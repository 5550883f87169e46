"""pydantic-ai Agent.

plain     a minimal Model subclass
function  the library's own FunctionModel, which also estimates token counts over the whole history at each call
"""

from __future__ import annotations

import common
from common import Adapter, Outcome, TodoItem, count
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits
from workloads import SYSTEM, TASK, Script

IMPORT = "from pydantic_ai import Agent; from pydantic_ai.models.function import FunctionModel"


def to_response(message: dict) -> ModelResponse:
    parts: list = [
        ToolCallPart(c["function"]["name"], c["function"]["arguments"], c["id"]) for c in message.get("tool_calls", ())
    ]
    if message["content"]:
        parts.append(TextPart(message["content"]))
    return ModelResponse(parts=parts, model_name="fake")


class FakeModel(Model):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    @property
    def model_name(self) -> str:
        return "fake"

    @property
    def system(self) -> str:
        return "fake"

    async def request(self, messages, model_settings, model_request_parameters) -> ModelResponse:
        model_settings, model_request_parameters = self.prepare_request(model_settings, model_request_parameters)
        return to_response(self.script.next())


def todo_write(todos: list[TodoItem]) -> str:
    """Replace the list."""
    return common.write_todos(todos)


def read_note(path: str) -> str:
    """Read a note."""
    return common.read_note(path)


def outcome(result) -> Outcome:
    contents = [
        part.content if isinstance(part, ToolReturnPart) and part.outcome == "success" else "refused"
        for message in result.all_messages()
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, (ToolReturnPart, RetryPromptPart))
    ]
    return count(result.output, contents)


def build(script: Script, workload: str, variant: str) -> Adapter:
    if variant == "function":
        model = FunctionModel(lambda messages, info: to_response(script.next()))
    else:
        model = FakeModel(script)
    agent = Agent(model, system_prompt=SYSTEM, tools=[todo_write, read_note], retries=10_000_000)
    limits = UsageLimits(request_limit=None)
    return Adapter(lambda: agent.run_sync(TASK, usage_limits=limits), outcome)
