"""deepagents with its default middleware (files, sub-agents, summaries) and langchain's write_todos; a fake model."""

from __future__ import annotations

from common import Adapter
from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from workloads import SYSTEM, TASK, Script

from adapters.langchain import CONFIG, SCRIPT, FakeModel, outcome, read_note  # noqa: F401

IMPORT = "from deepagents import create_deep_agent"


def build(script: Script, workload: str, variant: str) -> Adapter:
    # A context so large that it never asks the model for a summary, which would use up a scripted response.
    model = FakeModel(script=script, profile={"max_input_tokens": 10**12})
    agent = create_deep_agent(model, tools=[read_note], system_prompt=SYSTEM, middleware=[TodoListMiddleware()])
    return Adapter(lambda: agent.invoke({"messages": [("user", TASK)]}, CONFIG), outcome)
