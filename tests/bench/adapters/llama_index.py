"""llama-index FunctionAgent with FunctionTools and its own MockFunctionCallingLLM, not streaming.

It passes arguments to the function unchecked, so the tool validates the items itself, as users must.
"""

from __future__ import annotations

import asyncio

import common
from common import Adapter, Outcome, TodoItem, count
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from pydantic import TypeAdapter
from workloads import SYSTEM, TASK, Script

IMPORT = "from llama_index.core.agent.workflow import FunctionAgent; from llama_index.core.tools import FunctionTool"

_items = TypeAdapter(list[TodoItem]).validate_python


def todo_write(todos: list[TodoItem]) -> str:
    """Replace the list."""
    return common.write_todos(_items(todos))


def read_note(path: str) -> str:
    """Read a note."""
    return common.read_note(path)


def outcome(raw) -> Outcome:
    text, messages = raw
    return count(text, [m.content for m in messages if m.role == "tool"])


def build(script: Script, workload: str, variant: str) -> Adapter:
    def respond(messages, **kwargs) -> ChatMessage:
        response = script.next()
        blocks: list = [
            ToolCallBlock(tool_call_id=c["id"], tool_name=c["function"]["name"], tool_kwargs=c["function"]["arguments"])
            for c in response.get("tool_calls", ())
        ]
        if response["content"]:
            blocks.append(TextBlock(text=response["content"]))
        return ChatMessage(role="assistant", blocks=blocks)

    async def converse():
        agent = FunctionAgent(
            tools=[FunctionTool.from_defaults(todo_write), FunctionTool.from_defaults(read_note)],
            llm=MockFunctionCallingLLM(response_generator=respond),
            system_prompt=SYSTEM,
            streaming=False,
            timeout=None,
        )
        memory = ChatMemoryBuffer.from_defaults(token_limit=10_000_000)
        result = await agent.run(user_msg=TASK, memory=memory, max_iterations=10_000_000)
        return str(result), memory.get_all()

    return Adapter(lambda: asyncio.run(converse()), outcome)
