"""Foreign code around the loop: four events, what a hook may do at each, and how its answer is checked.

Read `HookAnswer` first, then `ALLOWED`. A hook is a function; it returns a `HookAnswer`, or None for nothing to say.
Hooks run in the order given. When each event happens is for `labkit.loop`; no hook can widen what the workspace allows,
since the policy judges after the hooks, and judges what will run.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, get_args

from labkit.messages import Decision, SystemMessage
from labkit.tools import words_of

ALLOWED: dict[str, frozenset[str]] = {
    "UserPromptSubmit": frozenset({"context"}),
    "PreToolUse": frozenset({"context", "deny", "arguments", "recommend"}),
    "PostToolUse": frozenset({"context", "output", "stop"}),
    "Stop": frozenset({"message"}),
}
"""Which fields of an answer an event owns. Any other that is set is a contract error."""


class HookAnswer(NamedTuple):
    """What a hook wants. Set only what its event owns.

    context    a text that joins the history as a system message          UserPromptSubmit, PreToolUse, PostToolUse
    deny       the reason why the call must not run                       PreToolUse
    arguments  others in place of the call's: a dict, or JSON text        PreToolUse
    recommend  "allow", "ask" or "deny", one voice among the policy's     PreToolUse
    output     a ToolResult in place of the tool's                        PostToolUse
    stop       True ends the run after this round                         PostToolUse
    message    a user message that asks for one more round, once a run    Stop
    """

    context: str | None = None
    deny: str | None = None
    arguments: dict[str, Any] | str | None = None
    recommend: Decision | None = None
    output: object = None
    stop: bool = False
    message: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Hooks:
    """The hooks of one agent, by event, each a sequence of functions.

    UserPromptSubmit(prompt: str)
    PreToolUse(call: PreparedCall)
    PostToolUse(call: PreparedCall, result: ToolResult)
    Stop(history: tuple[Message, ...])
    """

    UserPromptSubmit: tuple[Callable[[str], HookAnswer | None], ...] = ()
    PreToolUse: tuple[Callable[[Any], HookAnswer | None], ...] = ()
    PostToolUse: tuple[Callable[[Any, Any], HookAnswer | None], ...] = ()
    Stop: tuple[Callable[[Any], HookAnswer | None], ...] = ()

    def __post_init__(self) -> None:
        for event in fields(self):
            given = getattr(self, event.name)
            hooks = (given,) if callable(given) else tuple(given)
            if not all(map(callable, hooks)):
                raise ValueError(f"hooks for {event.name} must be functions")
            object.__setattr__(self, event.name, hooks)


class HookFailure(Exception):
    """A hook that raised or broke its contract. `code` says which; the loop turns it into a result or a note."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def ask_hook(event: str, hook: Callable[..., object], *seen: object) -> HookAnswer:
    """Call one hook and check its answer. Raises HookFailure: `hook_execution_error` or `hook_contract_error`."""
    name = f"the {event} hook {getattr(hook, '__name__', type(hook).__name__)!r}"
    try:
        answer = hook(*seen)
    except Exception as error:
        raise HookFailure("hook_execution_error", f"{name} raised {words_of(error)}") from error
    if answer is None:
        return HookAnswer()
    if not isinstance(answer, HookAnswer):
        raise HookFailure(
            "hook_contract_error", f"{name} returned {type(answer).__name__}; it may return a HookAnswer or None"
        )
    fault = _fault(event, answer)
    if fault:
        raise HookFailure("hook_contract_error", f"{name} {fault}")
    return answer


def _fault(event: str, answer: Any) -> str | None:
    """Which field of an answer is wrong for its event, or None. Types are checked too: an answer is foreign."""
    for name, value, unset in zip(answer._fields, answer, HookAnswer(), strict=True):
        if value is not unset and name not in ALLOWED[event]:
            owned = ", ".join(sorted(ALLOWED[event]))
            return f"set {name!r}, which is not its to set; {event} owns: {owned}"
    for key in ("context", "deny", "message"):
        if not isinstance(getattr(answer, key), str | None):
            return f"set {key!r} to something that is no text"
    if answer.recommend not in (None, *get_args(Decision)):
        return "recommended something that is not 'allow', 'ask' or 'deny'"
    if not isinstance(answer.arguments, dict | str | None):
        return "set 'arguments' to something that is neither a dict nor JSON text"
    if not isinstance(answer.stop, bool):
        return "set 'stop' to something that is not True or False"
    return None


def context_message(answer: HookAnswer) -> tuple[SystemMessage, ...]:
    """The context of an answer as a message, if it has any."""
    return (SystemMessage(answer.context),) if answer.context else ()
