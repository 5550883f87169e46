"""labkit in the benchmark's form: a whole P05 agent, every safeguard on, its model reading from a script.

`build(script, workload, variant) -> Adapter`; `common` and `workloads` are the harness's. What is timed is a run from a
fresh agent; its workspace is made before the clock starts.
"""

import tempfile

from common import Adapter, count
from workloads import NOTE, SYSTEM, TASK

from labkit import P05, AssistantMessage, ToolCall, ToolDefinition, ToolInput, ToolMessage, ToolResult, build_agent

IMPORT = "import labkit"


class ReadNoteInput(ToolInput):
    path: str


class ScriptModel:
    """Takes each reply from the script and keeps each request, as the scripted client does."""

    def __init__(self, script):
        self._script = script
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        message = self._script.next()
        calls = [
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        ]
        return AssistantMessage(message["content"], tuple(calls))


def build(script, workload, variant):
    """One whole conversation for each call of `run`."""
    workspace = tempfile.TemporaryDirectory()
    read_note = ToolDefinition("read_note", "Read a note.", ReadNoteInput, "read", lambda given: ToolResult(NOTE))

    def run():
        records = []
        agent = build_agent(
            P05,
            ScriptModel(script),
            workspace=workspace.name,
            tools=(read_note,),
            system_prompt=SYSTEM,
            audit=records.append,
            max_rounds=10**9,
        )
        return agent.run(TASK)

    def outcome(result):
        results = [message.content for message in result.history if isinstance(message, ToolMessage)]
        return count(result.text, results, is_write=lambda content: content.startswith('{"todos":'))

    return Adapter(run, outcome)
