"""langchain create_agent with TodoListMiddleware (its own write_todos) and a fake chat model."""

from __future__ import annotations

import json

import common
from common import Adapter, Outcome, count
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from workloads import SYSTEM, TASK, Script

IMPORT = "from langchain.agents import create_agent; from langchain.agents.middleware import TodoListMiddleware"
SCRIPT = {"todo_tool": "write_todos"}
CONFIG = {"recursion_limit": 10_000_000}


class FakeModel(BaseChatModel):
    """Turns the scripted dict into an AIMessage, as the framework's own OpenAI client would."""

    script: object

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        response = self.script.next()
        calls = [
            {"name": c["function"]["name"], "args": json.loads(c["function"]["arguments"]), "id": c["id"]}
            for c in response.get("tool_calls", ())
        ]
        message = AIMessage(content=response["content"] or "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def read_note(path: str) -> str:
    """Read a note."""
    return common.read_note(path)


def outcome(state) -> Outcome:
    messages = state["messages"]
    contents = [str(m.content) for m in messages if isinstance(m, ToolMessage)]
    return count(messages[-1].content, contents, lambda text: text.startswith("Updated todo list to"))


def build(script: Script, workload: str, variant: str) -> Adapter:
    agent = create_agent(
        FakeModel(script=script), tools=[read_note], system_prompt=SYSTEM, middleware=[TodoListMiddleware()]
    )
    return Adapter(lambda: agent.invoke({"messages": [("user", TASK)]}, CONFIG), outcome)
