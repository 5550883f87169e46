"""What several tests need: the wire checked without labkit's own check, a folder as one number, a run in one line."""

import hashlib
import json
from pathlib import Path

from labkit import P05, ScriptedModelClient, build_agent, call

REMINDER = "Keep the TODO list current. Call todo_write with the complete task snapshot when the plan changes."


def wire(request):
    """The messages of a request as they go to a server."""
    return request.to_openai()["messages"]


def assert_paired(messages):
    """PAIRED: on the wire each call has its result at once and in order, no other results, and all is UTF-8 JSON."""
    due = []
    for message in messages:
        if message["role"] == "tool":
            assert due, f"a result for {message['tool_call_id']!r}, which nobody waits for"
            assert message["tool_call_id"] == due.pop(0)
            assert type(message["content"]) is str
            continue
        assert not due, f"no result for {due}"
        due = [one["id"] for one in message.get("tool_calls", ())]
        assert all(due)
        assert len(set(due)) == len(due)
        assert all(type(one["function"]["arguments"]) is str for one in message.get("tool_calls", ()))
    assert not due, f"no result for {due}"
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode("utf-8")


def tree_hash(folder):
    """All names, kinds and bytes below a folder, as one number."""
    found = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        kind = "link" if path.is_symlink() else "file" if path.is_file() else "folder"
        found.update(f"{path.relative_to(folder).as_posix()}\0{kind}\0".encode())
        if kind == "file":
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


class Lab:
    """A P05 agent that went through a script: `agent`, `model`, `result`, and PAIRED held for all that was sent."""

    def __init__(self, folder, script, profile=P05, prompt="go", **parts):
        self.model = ScriptedModelClient(script)
        self.agent = build_agent(profile, self.model, workspace=folder, **parts)
        self.result = self.agent.run(prompt)
        for request in self.model.requests:
            assert_paired(wire(request))
        assert_paired([message.to_openai() for message in self.agent.history])

    @property
    def settled(self):
        """Each call of the run with its result, in order."""
        return [one for this in self.result.rounds for one in this.settled]

    @property
    def reminders(self):
        """How many reminders each request held."""
        return [sum(m["content"] == REMINDER for m in wire(request)) for request in self.model.requests]


def read(path="a.txt", **options):
    """A call of read_file."""
    return call("read_file", path=path, **options)


def plan(*contents, status="pending"):
    """A call of todo_write, all its items of one status."""
    return call("todo_write", todos=[{"content": content, "status": status} for content in contents])
