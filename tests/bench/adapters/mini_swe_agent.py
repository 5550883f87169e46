"""mini-swe-agent DefaultAgent. Its style differs: one shell-like action a call, no tool registry and no schema.

Here the environment runs the action in this process instead of a shell: it parses the call's JSON and checks it by
hand.

plain          a minimal model object with the same methods
deterministic  the library's own DeterministicToolcallModel, which dumps the whole script several times a round
"""

from __future__ import annotations

import json
import os

os.environ["MSWEA_SILENT_STARTUP"] = "1"

import common
from common import Adapter, Outcome, count, hand_checked
from minisweagent.agents.default import DefaultAgent
from minisweagent.exceptions import Submitted
from minisweagent.models.test_models import DeterministicToolcallModel
from workloads import SYSTEM, TASK, Script

IMPORT = "from minisweagent.agents.default import DefaultAgent"


class Environment:
    """Runs the action that a call names, and ends the run when told to."""

    config = None

    def execute(self, action: dict, cwd: str = "") -> dict:
        name = action["tool"]
        if name == "submit":
            raise Submitted({"role": "exit", "content": action["command"], "extra": {"submission": action["command"]}})
        try:
            arguments = json.loads(action["command"])
            if name == "todo_write":
                output = common.write_todos(hand_checked(arguments["todos"]))
            else:
                output = common.read_note(arguments["path"])
        except ValueError as error:
            return {"output": "", "returncode": 1, "exception_info": str(error)}
        return {"output": output, "returncode": 0, "exception_info": ""}

    def get_template_vars(self, **kwargs) -> dict:
        return {}

    def serialize(self) -> dict:
        return {}


def to_output(message: dict) -> dict:
    actions = [
        {"tool": c["function"]["name"], "command": c["function"]["arguments"], "tool_call_id": c["id"]}
        for c in message.get("tool_calls", ())
    ] or [{"tool": "submit", "command": message["content"], "tool_call_id": "final"}]
    return {**message, "extra": {"actions": actions, "cost": 0.0}}


class FakeModel(DeterministicToolcallModel):
    """Keeps the script out of the model's config."""

    def __init__(self, script: Script) -> None:
        super().__init__(outputs=[])
        self.script = script

    def query(self, messages, **kwargs) -> dict:
        return to_output(self.script.next())


def outcome(raw) -> Outcome:
    result, agent = raw
    contents = [m["extra"]["raw_output"] for m in agent.messages if m["role"] == "tool"]
    return count(result["submission"], contents)


def build(script: Script, workload: str, variant: str) -> Adapter:
    def run():
        if variant == "deterministic":

            class Counted(DeterministicToolcallModel):
                def query(self, messages, **kwargs):
                    script.next()
                    return super().query(messages, **kwargs)

            model = Counted(outputs=[to_output(m) for m in script.responses])
        else:
            model = FakeModel(script)
        agent = DefaultAgent(model, Environment(), system_template=SYSTEM, instance_template="{{task}}", cost_limit=0.0)
        return agent.run(TASK), agent

    return Adapter(run, outcome)
