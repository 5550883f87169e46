"""Which parts exist: five profiles, each adding to the one before, and the one function that puts an agent together.

Read `build_agent` from top to bottom. It decides nothing at run time, and two calls of it share nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, NamedTuple, Protocol

from labkit.filetools import file_tools, shell_tool
from labkit.hooks import Hooks
from labkit.loop import AgentRunner, ToolRoundObserver
from labkit.model import ModelClient
from labkit.permissions import Approver, AuditRecord, PermissionPolicy, Rule
from labkit.todos import TodoTracker
from labkit.tools import ToolDefinition, ToolRegistry
from labkit.workspace import Workspace

SYSTEM_PROMPT = "You are a careful assistant. Say what you did and what you did not do."


class Profile(NamedTuple):
    """A named set of capabilities: `tools`, `permissions`, `hooks`, `todos`."""

    name: str
    chapter: int
    title: str
    capabilities: frozenset[str]


P01 = Profile("P01", 1, "the loop", frozenset())
P02 = Profile("P02", 2, "tools", P01.capabilities | {"tools"})
P03 = Profile("P03", 3, "permissions", P02.capabilities | {"permissions"})
P04 = Profile("P04", 4, "hooks", P03.capabilities | {"hooks"})
P05 = Profile("P05", 5, "todo_write", P04.capabilities | {"todos"})
PROFILES = (P01, P02, P03, P04, P05)


class Tracker(ToolRoundObserver, Protocol):
    """A todo list of any design: an observer that brings a tool. `system_prompt`, if it has one, joins the prompt."""

    @property
    def tool_definition(self) -> ToolDefinition:
        """Its tool."""
        ...

    @property
    def todos(self) -> Sequence[Any]:
        """Its list."""
        ...


class Agent(AgentRunner):
    """The runner, and the list of its tracker."""

    def __init__(self, model: ModelClient, *, tracker: Tracker | None, **parts: Any) -> None:
        super().__init__(model, **parts)
        self._tracker = tracker

    @property
    def todos(self) -> Sequence[Any]:
        """The tracker's list; empty before P05."""
        return self._tracker.todos if self._tracker else ()


def build_agent(
    profile: Profile,
    model: ModelClient,
    *,
    workspace: str | PathLike[str] | None = None,
    approver: Approver | None = None,
    hooks: Hooks | None = None,
    rules: Iterable[Rule] = (),
    tools: Iterable[ToolDefinition] = (),
    observers: Iterable[ToolRoundObserver] = (),
    todos: Tracker | None = None,
    audit: Callable[[AuditRecord], object] | None = None,
    system_prompt: str | None = None,
    max_rounds: int = 20,
) -> Agent:
    """An agent of this profile, with parts of its own.

    ValueError for an argument that the profile has no use for, and for a missing workspace (needed from P02 on).
    """
    has = profile.capabilities
    rules, tools = tuple(rules), tuple(tools)
    for name, given, needed in (
        ("workspace", workspace, "tools"),
        ("tools", tools or None, "tools"),
        ("approver", approver, "permissions"),
        ("rules", rules or None, "permissions"),
        ("audit", audit, "permissions"),
        ("hooks", hooks, "hooks"),
        ("todos", todos, "todos"),
    ):
        if given is not None and needed not in has:
            first = next(other for other in PROFILES if needed in other.capabilities)
            raise ValueError(f"{profile.name} has no use for {name}=; {first.name} is the first that has")

    prompt = SYSTEM_PROMPT if system_prompt is None else system_prompt
    watchers = list(observers)
    registry = ToolRegistry()
    policy: PermissionPolicy | None = None
    tracker: Tracker | None = None
    if "tools" in has:
        if workspace is None:
            raise ValueError(f"{profile.name} needs workspace=, the folder that its tools may touch")
        place = Workspace(workspace)
        for tool in file_tools(place):
            registry.register(tool)
        if "permissions" in has:
            registry.register(shell_tool(place))
            policy = PermissionPolicy(place, rules)
    if "todos" in has:
        tracker = TodoTracker() if todos is None else _checked(todos)
        registry.register(tracker.tool_definition)
        watchers.insert(0, tracker)
        prompt += getattr(tracker, "system_prompt", "")
    for tool in tools:
        registry.register(tool)
    return Agent(
        model,
        tracker=tracker,
        system_prompt=prompt,
        registry=registry,
        policy=policy,
        approver=approver,
        audit=audit,
        hooks=hooks,
        observers=watchers,
        max_rounds=max_rounds,
    )


def _checked(todos: Tracker) -> Tracker:
    """The tracker, if it has all that one needs."""
    needed = ("tool_definition", "todos", "begin_run", "before_model", "record_tool_round", "view")
    missing = [name for name in needed if not hasattr(todos, name)]
    if missing:
        raise ValueError(f"todos= takes a tracker; {type(todos).__name__} lacks {', '.join(missing)}")
    return todos
