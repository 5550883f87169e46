"""A hundred agents at once: no list, counter, audit or file of one shows in another."""

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import labkit
from labkit import P05, ScriptedModelClient, build_agent, call, check_pairing, say
from labkit.designs.day55 import TodoManager as Day55TodoManager
from labkit.designs.s03 import TodoManager as S03TodoManager

AGENTS, ROUNDS, THREADS = 100, 10, 16


@pytest.fixture(autouse=True)
def _eager_switching():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class TodoRound:
    """A list of ten items a round."""

    items = 10

    def replies(self, name, number):
        """What the model says in one round."""
        contents = [f"{name} round {number} item {at}" for at in range(self.items)]
        return call("todo_write", todos=[{"content": content, "status": "pending"} for content in contents])

    def todos(self, name):
        """The list in the end."""
        return [f"{name} round {ROUNDS - 1} item {at}" for at in range(self.items)]

    def results(self, name, number):
        """The codes of one round's results, and a text that each must hold."""
        return [(None, f"{name} round {number} ")]

    count = 0
    audited = ROUNDS


class FiftyItems(TodoRound):
    """A list of fifty items a round."""

    items = 50


class RefusedUpdate(TodoRound):
    """An update that does not fit, each round."""

    def replies(self, name, number):
        return call("todo_write", todos=[{"content": name, "status": f"{name} failed"}])

    def todos(self, name):
        return []

    def results(self, name, number):
        return [("invalid_arguments", "todos[0].status")]

    audited = 0


class ThreeReads(TodoRound):
    """Three reads in a message, of a file that each agent writes anew each round."""

    def replies(self, name, number):
        write = call("write_file", path="a.txt", content=f"{name} round {number} ")
        return [write, *[call("read_file", path="a.txt")] * 3]

    def todos(self, name):
        return []

    def results(self, name, number):
        return [(None, "wrote"), *[(None, f"{name} round {number} ")] * 3]

    count = 1  # the reminder came in requests 4, 7 and 10
    audited = 4 * ROUNDS


class One:
    """One agent with a name that is in all it does, and the check that nobody else's is."""

    def __init__(self, name, workload, folder):
        self.name, self.workload, self.folder = name, workload, folder / name
        self.folder.mkdir(parents=True)
        self.sink = []
        script = [workload.replies(name, number) for number in range(ROUNDS)]
        self.model = ScriptedModelClient([*script, say(f"{name} done")])
        self.agent = build_agent(
            P05,
            self.model,
            workspace=self.folder,
            approver=lambda ask: "allow" if self.name in ask.call.arguments else "deny",
            audit=self.sink.append,
        )

    def go(self):
        """The whole run; what is wrong, as text."""
        return self.faults(self.agent.run(f"{self.name} go"))

    def faults(self, result):
        """Everything that is not this agent's own."""
        load, name = self.workload, self.name
        check_pairing(result.history)
        found = []
        for number, done in enumerate(result.rounds[:-1]):
            for one, (error, text) in zip(done.settled, load.results(name, number), strict=True):
                if one.result.error != error or text not in one.result.content:
                    found.append(f"{name}: round {number}: {one.result}")
        told = json.dumps([message.to_openai() for message in result.history])
        told += json.dumps([record.arguments for record in self.sink])
        told += "".join(path.read_text(encoding="utf-8") for path in self.folder.iterdir())
        strangers = [part[:3] for part in told.split("agent")[1:] if part[:3] != name[-3:]]
        if strangers:
            found.append(f"{name}: somebody else's words: {strangers[:3]}")
        if [item.content for item in self.agent.todos] != load.todos(name):
            found.append(f"{name}: the list {self.agent.todos}")
        if result.rounds[-1].after.count != load.count:
            found.append(f"{name}: the count {result.rounds[-1].after.count}")
        if not (len(self.sink) == len(result.audit) == load.audited) or list(result.audit) != self.sink:
            found.append(f"{name}: {len(self.sink)} audit entries")
        if (result.text, len(self.model.requests)) != (f"{name} done", ROUNDS + 1):
            found.append(f"{name}: ended {result.text!r} after {len(self.model.requests)} requests")
        return found


def hundred(workload, folder):
    """The agents, named agent000 to agent099."""
    return [One(f"agent{number:03}", workload(), folder) for number in range(AGENTS)]


def in_threads(ones):
    """Each in one of sixteen threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(One.go, ones))


def in_asyncio(ones):
    """Each by asyncio.to_thread."""

    async def all_of_them():
        return await asyncio.gather(*[asyncio.to_thread(one.go) for one in ones])

    return asyncio.run(all_of_them())


def by_turns(ones):
    """All in one thread, a round of each in turn."""
    runs = {one: one.agent.rounds(f"{one.name} go") for one in ones}
    ended = {}
    while len(ended) < len(ones):
        for one, run in runs.items():
            try:
                next(run)
            except StopIteration as end:
                ended.setdefault(one, end.value)
    return [one.faults(result) for one, result in ended.items()]


@pytest.mark.parametrize("workload", [TodoRound, ThreeReads, RefusedUpdate, FiftyItems])
@pytest.mark.parametrize("way", [in_threads, in_asyncio, by_turns])
def test_a_hundred_agents_at_once_share_nothing(way, workload, tmp_path):
    """A thousand rounds in all: each list, count, audit, file and history is its own agent's and complete."""
    assert [fault for faults in way(hundred(workload, tmp_path)) for fault in faults] == []


def test_the_check_sees_a_shared_list(tmp_path):
    """The control: with one tracker for all agents the same check finds strangers."""
    ones = hundred(TodoRound, tmp_path)[:2]
    ones[1].agent._registry.register(ones[0].agent._tracker.tool_definition, replace=True)
    assert [fault for faults in by_turns(ones) for fault in faults]


@pytest.mark.parametrize("design", [Day55TodoManager, S03TodoManager])
def test_trackers_of_the_other_designs_share_nothing(design):
    """In this lab a tracker of any design belongs to whom it is given to."""
    one, other = design(), design()
    one.record_tool_round(("other",))
    assert (one.view().count, other.view().count) == (1, 0)


def test_the_first_agents_of_a_process_can_be_built_at_once():
    """Argument models are made ready where they are first needed: also when sixteen threads need them at once."""
    source = """
import sys, tempfile, threading
from labkit import P05, ScriptedModelClient, build_agent, call, say
sys.setswitchinterval(1e-6)
together, good = threading.Barrier(16), []
def go(name, folder):
    todos = [{"content": name, "status": "pending"}]
    script = [[call("glob", pattern="*"), call("todo_write", todos=todos)], say(name)]
    together.wait()
    agent = build_agent(P05, ScriptedModelClient(script), workspace=folder)
    result = agent.run(name)
    if result.text == agent.todos[0].content == name and not any(one.result.error for one in result.rounds[0].settled):
        good.append(name)
with tempfile.TemporaryDirectory() as folder:
    threads = [threading.Thread(target=go, args=(str(number), folder)) for number in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(len(good))
"""
    env = {**os.environ, "PYTHONPATH": str(Path(labkit.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, encoding="utf-8", env=env)
    assert (done.stdout.strip(), done.stderr) == ("16", "")


def test_two_agents_share_no_part_that_changes(tmp_path):
    """Two calls of build_agent share no tracker, registry, history or list."""
    one, other = (build_agent(P05, ScriptedModelClient([]), workspace=tmp_path) for _ in range(2))
    for name, part in vars(one).items():
        if part is not None and not isinstance(part, int | tuple):
            assert part is not vars(other)[name], name
