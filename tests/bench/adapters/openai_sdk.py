"""The tutorial loop over the openai package, with a transport that never leaves the process.

Unlike the other peers this one pays for the wire: the package walks and encodes every message of every request, and
parses each response into its models. It shows what a framework's real client adds to the figures of the others.
"""

from __future__ import annotations

import json

import httpx2 as httpx
from common import Adapter, Outcome, count, hand_checked, write_todos
from common import read_note as read
from openai import OpenAI
from workloads import SYSTEM, TASK, Script

IMPORT = "from openai import OpenAI"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("todo_write", "read_note")
]


def outcome(messages) -> Outcome:
    return count(messages[-1]["content"], [m["content"] for m in messages if m["role"] == "tool"])


def build(script: Script, workload: str, variant: str) -> Adapter:
    def answer(request: httpx.Request) -> httpx.Response:
        choice = {"index": 0, "finish_reason": "stop", "message": script.next()}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        return httpx.Response(200, content=json.dumps(body).encode(), headers={"content-type": "application/json"})

    client = OpenAI(
        api_key="none", base_url="http://localhost/v1", http_client=httpx.Client(transport=httpx.MockTransport(answer))
    )
    tools = {"todo_write": lambda a: write_todos(hand_checked(a["todos"])), "read_note": lambda a: read(a["path"])}

    def run():
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        while True:
            message = client.chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return messages
            for call in message.tool_calls:
                try:
                    content = tools[call.function.name](json.loads(call.function.arguments))
                except Exception as error:
                    content = f"Error: {error}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    return Adapter(run, outcome)
