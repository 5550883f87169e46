"""May this call run? Candidates are collected, the strictest wins: deny over ask over allow. No candidate: allow.

Read `PermissionPolicy.judge` first. What a tool's effect is, the tool says; what follows from it is decided here. There
are no patterns for shell commands: a prefix that looks safe ("git status") is safe in no shell, so each one is asked.
Who is asked, and when, is for `labkit.loop`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

from labkit.errors import WorkspaceError
from labkit.messages import Decision, Effect, ToolCall
from labkit.tools import PreparedCall, ToolDefinition
from labkit.workspace import Workspace

Source = Literal["workspace", "effect", "hook", "rule", "audit", "default"]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A standing wish about calls: for those that `matches`, this decision. A matcher that raises denies."""

    name: str
    decision: Decision
    matches: Callable[[PreparedCall], bool]

    def __post_init__(self) -> None:
        if self.decision not in get_args(Decision):
            raise ValueError(f"rule {self.name!r}: {self.decision!r} is no decision; use one of {get_args(Decision)}")


FILE_RULE = Rule("ask before files change", "ask", lambda call: call.tool.name in ("write_file", "edit_file"))
"""The built-in rule. It names two tools and no others; `todo_write`, whose effect is `write` too, asks nobody."""


class Ask(NamedTuple):
    """A question for a person: this call of this tool, for this reason. Only the answer "allow" is a yes."""

    call: ToolCall
    tool: ToolDefinition
    reason: str


class Approver(Protocol):
    """Somebody to ask. Anything but the answer "allow", an exception too, means deny."""

    def __call__(self, ask: Ask, /) -> object:
        """The answer."""
        ...


class AuditRecord(NamedTuple):
    """One line for each call that reached permission: what would run, what was decided, by whom and why."""

    call_id: str
    tool: str
    effect: Effect
    arguments: str
    decision: Decision
    source: Source
    reason: str
    asked: bool = False

    def settled(self, answer: object) -> "AuditRecord":
        """The record once a person was asked: allow for exactly "allow", else deny."""
        return self._replace(decision="allow" if type(answer) is str and answer == "allow" else "deny", asked=True)


_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class PermissionPolicy:
    """What is allowed in one workspace under these rules. It remembers nothing."""

    def __init__(self, workspace: Workspace, rules: tuple[Rule, ...] = ()) -> None:
        self._workspace = workspace
        self._rules = (FILE_RULE, *rules)

    def judge(self, prepared: PreparedCall, recommended: Decision | None = None) -> AuditRecord:
        """The strictest of all that speak about this call; among equals the first, in the order of the contract."""
        tool = prepared.tool
        decision: Decision = "allow"
        source: Source = "default"
        reason = "nothing speaks against it"
        for other, its_source, its_reason in self._candidates(prepared, recommended):
            if source == "default" or _STRICTNESS[other] > _STRICTNESS[decision]:
                decision, source, reason = other, its_source, its_reason
        return AuditRecord(prepared.call.id, tool.name, tool.effect, prepared.call.arguments, decision, source, reason)

    def _candidates(self, prepared: PreparedCall, recommended: Decision | None) -> list[tuple[Decision, Source, str]]:
        tool = prepared.tool
        found: list[tuple[Decision, Source, str]] = []
        if tool.effect == "write" and tool.path is not None:
            try:
                self._workspace.locate(tool.path(prepared.input))
            except WorkspaceError as error:
                found.append(("deny", "workspace", str(error)))
            except Exception as error:
                found.append(("deny", "workspace", f"where it would write cannot be told ({type(error).__name__})"))
        if tool.effect == "execute":
            found.append(("ask", "effect", "it runs a command on this machine"))
        if recommended is not None:
            found.append((recommended, "hook", f"a PreToolUse hook recommends to {recommended}"))
        for rule in self._rules:
            try:
                if rule.matches(prepared):
                    found.append((rule.decision, "rule", rule.name))
            except Exception as error:
                found.append(("deny", "rule", f"{rule.name} could not be judged ({type(error).__name__})"))
        return found
