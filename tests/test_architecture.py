"""The house: which floor each room is on, that imports point down only, and what the front door gives."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import labkit

HOUSE = Path(labkit.__file__).parent
FLOORS = [
    {"messages", "errors"},
    {"model", "tools", "workspace"},
    {"permissions", "hooks", "todos", "filetools", "clients", "designs"},
    {"loop"},
    {"profiles", "frames"},
    {"classroom"},
    {"__init__", "__main__", "cli", "chapters"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
DOORS = len(FLOORS) - 1
DATA = {"texts", "mutants", "data"}  # modules that are read as text
CORE = {"pydantic", "pydantic_core", "typing_extensions"}  # the last two come with pydantic
EXTRAS = {"openai", "httpx2", "httpcore2", "xllamacpp"}  # a live client: the SDK and what comes with it, a model here


def modules():
    """Each module with its room. A folder counts as one room."""
    for path in sorted(HOUSE.rglob("*.py")):
        inside = path.relative_to(HOUSE)
        if not DATA & set(inside.parts):
            yield path, inside.parts[0].removesuffix(".py")


def imports(path):
    """The full names a module imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write out where {node.module or '.'} is"
            yield from (f"{node.module}.{one.name}" for one in node.names)


def rooms(path):
    """The rooms that a module imports; `from labkit import x` goes through the front door unless x is a room."""
    for name in imports(path):
        whole, *parts = name.split(".")
        if whole == "labkit":
            yield parts[0] if parts and parts[0] in FLOOR else "__init__"


MODULES = list(modules())
each_module = pytest.mark.parametrize(
    ("path", "room"), MODULES, ids=[path.relative_to(HOUSE).as_posix() for path, _ in MODULES]
)


@each_module
def test_imports_point_down(path, room):
    """Each room has a floor and imports only from floors below, or from itself; doors may lead to each other."""
    assert room in FLOOR, f"{path.name}: give the room {room!r} a floor in architecture.md and here"
    for other in rooms(path):
        down = FLOOR[other] < FLOOR[room] or other == room or FLOOR[other] == FLOOR[room] == DOORS
        assert down, f"{room} (floor {FLOOR[room]}) imports {other} (floor {FLOOR[other]})"


def test_the_floors_are_read_from_real_files():
    """The test above looks at the whole house and at imports that are there."""
    seen = {room for _, room in MODULES}
    assert {"messages", "tools", "todos", "loop", "profiles", "clients", "designs", "classroom"} <= seen
    assert {"permissions", "hooks", "tools", "model", "messages"} == set(rooms(HOUSE / "loop.py"))
    assert set(rooms(HOUSE / "messages.py")) == set(rooms(HOUSE / "errors.py")) == set()


@each_module
def test_the_core_imports_pydantic_only(path, room):
    """Below the classroom nothing but the standard library and pydantic; a live client may name its extras as well."""
    if FLOOR.get(room, 0) >= FLOOR["classroom"] and room != "__init__":
        return
    foreign = {name.split(".")[0] for name in imports(path)} - sys.stdlib_module_names - {"labkit"} - CORE
    assert foreign <= (EXTRAS if room == "clients" else set())


def test_the_loop_does_not_know_the_todo_list():
    """A tracker reaches the loop by its shape: the word todo is not in it."""
    assert "todo" not in (HOUSE / "loop.py").read_text(encoding="utf-8").lower()


@each_module
def test_nothing_is_built_at_module_level(path, room):
    """No module holds a tracker, registry, workspace, client or agent that all would share."""
    builders = {"TodoTracker", "TodoManager", "ToolRegistry", "Workspace", "ToolDefinition", "ScriptedModelClient"}
    builders |= {"OpenAIModelClient", "AgentRunner", "Agent", "build_agent", "PermissionPolicy"}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            called = {ast.unparse(one.func).split(".")[-1] for one in ast.walk(statement) if isinstance(one, ast.Call)}
            assert not called & builders, f"{path.name}:{statement.lineno}"


# ---- the front door ----

NAMES = """
    P01 P02 P03 P04 P05 Profile Agent build_agent
    AgentRunner Round RunResult Settled ToolRoundObserver
    AssistantMessage Message SystemMessage ToolCall ToolMessage ToolResult UserMessage
    MessageView ModelClient ModelRequest check_pairing
    ScriptedModelClient call reply say
    Approver Ask AuditRecord Decision PermissionPolicy Rule
    HookAnswer Hooks
    TodoItem TodoTracker
    PreparedCall ToolDefinition ToolInput ToolRegistry
    Workspace
    LabkitError ModelError PairingError ScriptError SettingsError ToolDefinitionError WorkspaceError
"""


def test_the_exported_names_are_these():
    """`labkit` exports these names and no others: each is there, and nothing public stands beside them but rooms."""
    assert sorted(labkit.__all__) == sorted(NAMES.split())
    assert all(hasattr(labkit, name) for name in labkit.__all__)
    beside = {name for name in vars(labkit) if not name.startswith("_")} - set(labkit.__all__)
    assert beside <= FLOOR.keys()


GUARD = """
import os, sys
sys.modules.update(dict.fromkeys(["openai", "ipywidgets", "matplotlib", "IPython"]))  # None blocks an import
import pydantic, subprocess, threading, secrets, pathlib, inspect, dataclasses, contextlib, signal, stat, copy

def blame():
    '''The labkit module that asked, or None where the import system or pydantic did.'''
    frame = sys._getframe(2)
    while frame:
        name = frame.f_globals.get("__name__", "")
        if name.split(".")[0] in ("importlib", "_frozen_importlib", "_frozen_importlib_external", "pydantic"):
            return None
        if name.split(".")[0] == "labkit":
            return name
        frame = frame.f_back

found = []
DISK = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "subprocess.Popen", "socket.connect"}

def hook(event, args):
    if event in DISK and blame():
        found.append((blame(), event, args[:1]))

class Environment(type(os.environ)):
    def __getitem__(self, key):
        if blame():
            found.append((blame(), "environment", key))
        return super().__getitem__(key)

os.environ.__class__ = Environment
sys.addaudithook(hook)
"""


def guarded(code):
    """What `found` holds after this code, in a Python of its own with the guard set up."""
    ends = "\nprint(found, sorted(n for n in ('openai', 'ipywidgets', 'matplotlib', 'IPython') if sys.modules[n]))"
    done = subprocess.run(
        [sys.executable, "-c", GUARD + code + ends], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_labkit_needs_and_reads_nothing():
    """`import labkit` works without openai, ipywidgets, matplotlib, IPython, and reads neither environment nor disk."""
    assert guarded("import labkit; labkit.build_agent; labkit.TodoTracker()") == "[] []"


def test_a_scripted_run_works_without_the_extras(tmp_path):
    """The whole of P05 runs offline with none of the extras and reads the environment for nothing."""
    code = f"""
from labkit import P05, ScriptedModelClient, build_agent, call, say
model = ScriptedModelClient([call("todo_write", todos=[]), say("done")])
assert build_agent(P05, model, workspace={str(tmp_path)!r}).run("go").text == "done"
"""
    assert guarded(code) == "[] []"


@pytest.mark.parametrize("code", ["os.environ['PATH']", "os.environ.get('X')", "open(os.devnull).close()"])
def test_the_guard_sees_what_it_guards_against(code):
    """The control: a labkit module that reads the environment or the disk is found."""
    planted = f"exec(compile({code!r}, 'x', 'exec'), {{'__name__': 'labkit.planted', 'os': os}})"
    assert "labkit.planted" in guarded(planted)
