"""The workspace under attack: whatever links, special files and races there are, nothing outside changes or is read."""

import json
import os
import shutil
import sys
import threading

import pytest
from helpers import tree_hash
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import (
    P05,
    HookAnswer,
    Hooks,
    ScriptedModelClient,
    ToolCall,
    ToolRegistry,
    Workspace,
    build_agent,
    call,
    say,
)
from labkit.filetools import file_tools

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a right of their own there")

CANARY = "CANARY-5f1c"
"""Stands in every file outside."""

HIDDEN = "hidden-9b7e"
"""The name of a file that is nowhere but outside."""

NAMES = ["a", "b", "sub", "link", "文 件"]


class World:
    """A workspace beside an outside that is full of canaries, and the tools over the workspace."""

    def __init__(self, root):
        self.inside, self.outside = root / "ws", root / "ws-outside"
        self.inside.mkdir()
        for folder in ("", "sub", "sub/sub", "sub/sub/sub", "link"):
            (self.outside / folder).mkdir()
            for name in ("a", "b", HIDDEN):
                (self.outside / folder / name).write_text(f"{CANARY} old", encoding="utf-8")
        self.before = tree_hash(self.outside)
        self.workspace = Workspace(self.inside)
        self.registry = ToolRegistry(file_tools(self.workspace))

    def use(self, name, **arguments):
        """One call, as the loop makes it."""
        return self.registry.invoke(self.registry.prepare(ToolCall("c", name, json.dumps(arguments))))

    def use_all(self, path):
        """Each tool on this path; nothing of the outside in what they say."""
        for result in (
            self.use("read_file", path=path),
            self.use("edit_file", path=path, old=f"{CANARY} old", new="EVIL"),
            self.use("write_file", path=path, content="EVIL"),
        ):
            assert CANARY not in result.content
        for pattern in (path, f"{path}/*", f"{path}/**", "**/*"):
            result = self.use("glob", pattern=pattern)
            if result.error or result.content == "no file matches":
                continue
            for found in result.content.split("\n"):
                assert (self.inside / found).resolve(strict=True).is_relative_to(self.inside), found

    def empty(self):
        """The workspace without anything in it; the outside is never changed, so it can stay."""
        shutil.rmtree(self.inside)
        self.inside.mkdir()
        return self

    def check(self):
        """The outside is as it was, and nothing of it has got inside."""
        assert tree_hash(self.outside) == self.before
        files = [path for path in self.inside.rglob("*") if path.is_file() and not path.is_symlink()]
        assert [path for path in files if CANARY in path.read_text(encoding="utf-8")] == []


@pytest.fixture
def world(tmp_path):
    """A fresh world."""
    return World(tmp_path.resolve())


# ---- any folders, links and special files ----

parts = st.lists(st.sampled_from([*NAMES, ".", "..", "ws-outside", "ws", HIDDEN]), min_size=1, max_size=4)
paths = st.builds(
    lambda front, middle, end: front + "/".join(middle) + end,
    st.sampled_from(["", "", "", "./", "/", "//", "~/", "../", "\0", " "]),
    parts,
    st.sampled_from(["", "", "/", "/.", "\0", "/.."]),
)
things = st.tuples(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["folder", "file", "link", "link", "link", "relative link", "hard link", "fifo"]),
    st.sampled_from(["", ".", "..", *NAMES, "a/b", "../ws-outside", f"../ws-outside/{HIDDEN}", "new", HIDDEN]),
)


def make(world, path, kind, target):
    """Put a thing into the workspace, if there is room for it."""
    place = world.inside / path
    if os.path.lexists(place):
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "folder":
            place.mkdir()
        elif kind == "file":
            place.write_text("mine", encoding="utf-8")
        elif kind == "link":
            place.symlink_to(world.outside / target)
        elif kind == "relative link":
            place.symlink_to(target or ".")
        elif kind == "hard link":
            os.link(world.inside / NAMES[0], place, follow_symlinks=False)
        else:
            os.mkfifo(place)
    except OSError:
        pass


def arranged(world, arrangement):
    """A workspace with these things, made from inside: the test must not do itself what it forbids."""
    world.empty()
    for path, kind, target in arrangement:
        parent = (world.inside / path).parent
        while not os.path.lexists(parent):
            parent = parent.parent
        if parent.exists() and parent.resolve().is_relative_to(world.inside):
            make(world, path, kind, target)
    world.before = tree_hash(world.outside)


@settings(max_examples=150)
@given(arrangement=st.lists(things, max_size=6), wanted=st.lists(paths, min_size=1, max_size=4))
def test_no_arrangement_of_links_leads_out(world, arrangement, wanted):
    """For any folders, links, hard links and pipes, and any path: the outside neither changes nor shows."""
    arranged(world, arrangement)
    for path in wanted:
        world.use_all(path)
    world.check()


@settings(max_examples=80)
@given(arrangement=st.lists(things, max_size=5), wanted=st.lists(paths, min_size=1, max_size=4))
def test_no_arrangement_leads_out_of_the_whole_agent(world, arrangement, wanted):
    """The same through P05 with an approver who says yes to all: no exception leaves the loop, and none gets out."""
    arranged(world, arrangement)
    calls = [
        one
        for path in wanted
        for one in (
            call("write_file", path=path, content="EVIL"),
            call("edit_file", path=path, old="old", new="EVIL"),
            call("read_file", path=path),
            call("glob", pattern=path),
        )
    ]
    model = ScriptedModelClient([calls, say("done")])
    result = build_agent(P05, model, workspace=world.inside, approver=lambda ask: "allow").run("go")
    assert result.text == "done"
    for one in result.rounds[0].settled:
        assert CANARY not in one.result.content
    world.check()


def test_writing_over_a_hard_link_leaves_the_other_name_alone(world):
    """A file inside that is also a file outside is replaced inside, and unchanged outside."""
    os.link(world.outside / HIDDEN, world.inside / "same")
    assert world.use("write_file", path="same", content="new").error is None
    assert (world.inside / "same").read_text(encoding="utf-8") == "new"
    world.check()


# ---- between check and use ----


class SwappedAfterLocate(Workspace):
    """A workspace in which somebody swaps a folder for a link, right after a path was found to be inside."""

    swap = staticmethod(lambda: None)

    def locate(self, path):
        place = super().locate(path)
        self.swap()
        return place


def swap_for(place, target):
    """Put a link in the place of whatever is there."""

    def swap():
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)
        place.symlink_to(target)

    return swap


@pytest.mark.parametrize(("depth", "swapped"), [(depth, part) for depth in (1, 2, 3) for part in range(depth + 1)])
def test_a_part_swapped_for_a_link_after_the_check_leads_nowhere(depth, swapped, world):
    """Any part of a path, the file too, becomes a link to outside between check and use: refused, nothing read."""
    path = "/".join(["sub"] * depth + ["a"])
    place = world.inside.joinpath(*path.split("/")[: swapped + 1])
    target = world.outside / "a" if swapped == depth else world.outside
    workspace = SwappedAfterLocate(world.inside)
    world.registry = ToolRegistry(file_tools(workspace))
    for use in (
        lambda: world.use("read_file", path=path),
        lambda: world.use("write_file", path=path, content="EVIL"),
        lambda: world.use("edit_file", path=path, old="old", new="EVIL"),
    ):
        workspace.swap = lambda: None
        world.empty()
        (world.inside / path).parent.mkdir(parents=True, exist_ok=True)
        (world.inside / path).write_text("mine old", encoding="utf-8")
        workspace.swap = swap_for(place, target)
        result = use()
        assert CANARY not in result.content
        assert result.error == "tool_execution_error"
        world.check()


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
def test_a_hook_that_swaps_a_folder_gets_nothing(name, world):
    """A hook runs before the policy: the link it makes is seen by the boundary, for a write with no one asked."""
    arguments = {"write_file": {"content": "EVIL"}, "edit_file": {"old": "old", "new": "EVIL"}}.get(name, {})
    (world.inside / "sub").mkdir()
    hooks = Hooks(PreToolUse=[lambda prepared: swap_for(world.inside / "sub", world.outside)()])
    model = ScriptedModelClient([call(name, path="sub/a", **arguments), say("done")])
    agent = build_agent(P05, model, workspace=world.inside, approver=lambda ask: "allow", hooks=hooks)
    settled = agent.run("go").rounds[0].settled[0]
    assert settled.result.error == ("tool_execution_error" if name == "read_file" else "permission_denied")
    assert CANARY not in settled.result.content
    world.check()


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
def test_an_approver_that_swaps_a_folder_while_asked_gets_nothing(name, world):
    """The check was before the question: what is swapped while a person thinks is found when the file is opened."""
    arguments = {"write_file": {"content": "EVIL"}, "edit_file": {"old": "old", "new": "EVIL"}}[name]
    (world.inside / "sub").mkdir()

    def approver(ask):
        swap_for(world.inside / "sub", world.outside)()
        return "allow"

    model = ScriptedModelClient([call(name, path="sub/a", **arguments), say("done")])
    settled = build_agent(P05, model, workspace=world.inside, approver=approver).run("go").rounds[0].settled[0]
    assert (settled.decision, settled.result.error) == ("allow", "tool_execution_error")
    world.check()


def test_no_hook_and_no_yes_widens_the_workspace(world):
    """A hook that rewrites to a path outside and recommends it, with an approver who says yes: denied."""
    away = {"path": "../ws-outside/a", "content": "EVIL"}
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(arguments=away, recommend="allow")])
    model = ScriptedModelClient([call("write_file", path="fine", content="x"), say("done")])
    agent = build_agent(P05, model, workspace=world.inside, approver=lambda ask: "allow", hooks=hooks)
    settled = agent.run("go").rounds[0].settled[0]
    assert (settled.result.error, settled.audit.source, settled.audit.asked) == (
        "permission_denied",
        "workspace",
        False,
    )
    world.check()


def test_a_workspace_that_becomes_a_link_itself_leads_nowhere(world):
    """The workspace folder replaced by a link to outside: nothing is read or written through it."""
    shutil.rmtree(world.inside)
    world.inside.symlink_to(world.outside)
    for path in ("a", "sub/a", HIDDEN, "*", "**"):
        world.use_all(path)
    world.inside.unlink()
    world.inside.mkdir()
    world.check()


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "glob"])
def test_a_race_that_never_rests(tool, world):
    """While a thread swaps folder and link as fast as it can, no call of hundreds reads or changes the outside."""
    sub, spare, stop, swaps = world.inside / "sub", world.inside / "spare", threading.Event(), [0]
    sub.mkdir()
    (sub / "a").write_text("mine old", encoding="utf-8")

    def swap():
        while not stop.is_set():
            os.rename(sub, spare)
            try:
                os.symlink(world.outside, sub)
                swaps[0] += 1
                os.unlink(sub)
                os.rename(spare, sub)
            except OSError:  # a write has made the folder anew meanwhile, as it may
                shutil.rmtree(spare, ignore_errors=True)

    arguments = {
        "read_file": {"path": "sub/a"},
        "write_file": {"path": "sub/a", "content": "mine old"},
        "edit_file": {"path": "sub/a", "old": "old", "new": "old EVIL"},
        "glob": {"pattern": "*/*"},
    }[tool]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    racer = threading.Thread(target=swap)
    racer.start()
    try:
        results = []
        while len(results) < 400 or (swaps[0] < 20 and racer.is_alive()):  # how often it swaps is up to the machine
            results.append(world.use(tool, **arguments))
    finally:
        stop.set()
        racer.join()
        sys.setswitchinterval(before)
    assert swaps[0] >= 20, "the racer ended early"
    assert not [result.content for result in results if CANARY in result.content or HIDDEN in result.content]
    assert not list(world.inside.rglob("*.tmp"))
    world.check()
