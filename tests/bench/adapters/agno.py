"""agno Agent with two function tools and a fake model; telemetry off, no database."""

from __future__ import annotations

import os

os.environ["AGNO_TELEMETRY"] = "false"

import logging
from dataclasses import dataclass

import common
from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from common import Adapter, Outcome, TodoItem, count
from workloads import SYSTEM, TASK, Script

logging.disable(logging.CRITICAL)  # or it prints a traceback for every refused call
IMPORT = "from agno.agent import Agent; from agno.models.base import Model"


@dataclass
class FakeModel(Model):
    script: object = None

    def invoke(self, *args, **kwargs) -> ModelResponse:
        response = self.script.next()
        return ModelResponse(
            role="assistant", content=response["content"], tool_calls=list(response.get("tool_calls", ()))
        )

    async def ainvoke(self, *args, **kwargs):
        raise NotImplementedError

    def invoke_stream(self, *args, **kwargs):
        raise NotImplementedError

    def ainvoke_stream(self, *args, **kwargs):
        raise NotImplementedError

    def _parse_provider_response(self, response, **kwargs):
        raise NotImplementedError

    def _parse_provider_response_delta(self, response):
        raise NotImplementedError


def todo_write(todos: list[TodoItem]) -> str:
    """Replace the list."""
    return common.write_todos(todos)


def read_note(path: str) -> str:
    """Read a note."""
    return common.read_note(path)


def outcome(result) -> Outcome:
    contents = [str(m.content) for m in result.messages if m.role == "tool"]
    return count(result.messages[-1].content, contents)


def build(script: Script, workload: str, variant: str) -> Adapter:
    def run():
        agent = Agent(
            model=FakeModel(id="fake", script=script),
            instructions=SYSTEM,
            tools=[todo_write, read_note],
            telemetry=False,
        )
        return agent.run(TASK)

    return Adapter(run, outcome)
