"""The loop: ask the model, settle each of its calls, commit the round, repeat. In which order, and no more.

Read `AgentRunner.drive` first, then `_round`, then `_settle`. No feature lives here: a tool comes by the registry, a
rule by the policy, foreign code by hooks, and whoever watches rounds by the four methods of `ToolRoundObserver`.

What a reader can rely on: the history only grows, a whole round at a time; guidance is in one request; each call has
exactly one result, right behind it, whatever happened.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from inspect import GEN_RUNNING, GEN_SUSPENDED, getgeneratorstate
from typing import Any, Literal, NamedTuple, Protocol

from labkit.hooks import HookAnswer, HookFailure, Hooks, ask_hook, context_message
from labkit.messages import (
    AssistantMessage,
    Decision,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from labkit.model import MessageView, ModelClient, ModelRequest, check_pairing
from labkit.permissions import Approver, Ask, AuditRecord, PermissionPolicy
from labkit.tools import PreparedCall, ToolRegistry, checked_result, words_of

StopReason = Literal["completed", "refusal", "content_filter", "empty_reply", "length", "max_rounds", "hook_stopped"]


class ToolRoundObserver(Protocol):
    """Who watches rounds and may whisper."""

    def begin_run(self) -> None:
        """A prompt was given. Not called when a Stop hook asks for one more round."""
        ...

    def before_model(self) -> Sequence[Message]:
        """Guidance: messages for the next request, and for it alone."""
        ...

    def record_tool_round(self, names: tuple[str, ...]) -> Sequence[Message]:
        """The names called in a round, once its results are in the history. Returns messages that stay there."""
        ...

    def view(self) -> object:
        """What it knows, frozen. The loop puts it into `Round` without looking at it."""
        ...


class Settled(NamedTuple):
    """One call and what came of it. `audit` is None where the call never reached permission."""

    call: ToolCall
    result: ToolResult
    audit: AuditRecord | None = None

    @property
    def decision(self) -> Decision | None:
        """Allow or deny, or None where nobody decided."""
        return self.audit.decision if self.audit else None


class Round(NamedTuple):
    """One request, its reply, and what came of each call. `stop_reason` is None while the run goes on.

    `kept` are messages of observers that stay in the history, `context` those of hooks, `before` and `after` what the
    first observer (the tracker, where there is one) knew, `notes` what went wrong without stopping anything.
    """

    number: int
    request: ModelRequest
    reply: AssistantMessage
    settled: tuple[Settled, ...]
    kept: tuple[Message, ...]
    context: tuple[Message, ...]
    before: Any
    after: Any
    notes: tuple[str, ...]
    stop_reason: StopReason | None


class RunResult(NamedTuple):
    """How a run ended. Only the stop reason `completed` is a success; `history` is whole, the rest is of this run."""

    text: str
    stop_reason: StopReason
    rounds: tuple[Round, ...]
    audit: tuple[AuditRecord, ...]
    history: MessageView


class AgentRunner:
    """One conversation with one model. It goes on with each run; nothing of it is shared."""

    def __init__(
        self,
        model: ModelClient,
        *,
        system_prompt: str = "",
        registry: ToolRegistry | None = None,
        policy: PermissionPolicy | None = None,
        approver: Approver | None = None,
        audit: Callable[[AuditRecord], object] | None = None,
        hooks: Hooks | None = None,
        observers: Iterable[ToolRoundObserver] = (),
        max_rounds: int = 20,
    ) -> None:
        if type(max_rounds) is not int or max_rounds < 1:
            raise ValueError(f"max_rounds must be a whole number of at least 1, not {max_rounds!r}")
        self._model = model
        self._system = (SystemMessage(system_prompt),) if system_prompt else ()
        self._registry = registry or ToolRegistry()
        self._policy = policy
        self._approver = approver
        self._sink = audit
        self._hooks = hooks or Hooks()
        self._observers = tuple(observers)
        self._max_rounds = max_rounds
        self._history: list[Message] = []
        self._paired = 0  # so much of the history has been checked
        # subtle: no flag that a round is open, since an interrupt could come before the line that lowers it
        self._latest: Generator[Ask, object, Round] | None = None

    @property
    def history(self) -> MessageView:
        """What was said so far, as it stands now; the system prompt and guidance are not in it."""
        return MessageView(self._history)

    @property
    def approver(self) -> Approver | None:
        """Who answers an Ask in `rounds` and `run`; `drive` asks whoever drives."""
        return self._approver

    # ---- three ways to take the same rounds ----

    def drive(self, prompt: str | None) -> Generator[Round | Ask, object, RunResult]:
        """Yield a Round for each request, and an Ask where a person decides: answer it by `.send("allow")`.

        Nothing happens before the first `next()`. A prompt of None goes on from the history. Closing the generator
        leaves a paired history.
        """
        if prompt is not None and not isinstance(prompt, str):
            raise TypeError(f"a prompt is text, or None to go on from the history; not {type(prompt).__name__}")
        return self._drive(prompt)

    def rounds(self, prompt: str | None) -> Generator[Round, None, RunResult]:
        """`drive`, each Ask put to the approver; with none, the answer is deny."""
        driver = self.drive(prompt)
        answer: object = None
        try:
            while True:
                event = driver.send(answer)
                answer = None
                if isinstance(event, Ask):
                    answer = self._asked(event)
                else:
                    yield event
        except StopIteration as end:
            result: RunResult = end.value
            return result
        finally:
            driver.close()

    def run(self, prompt: str | None) -> RunResult:
        """`rounds`, to the end."""
        rounds = self.rounds(prompt)
        while True:
            try:
                next(rounds)
            except StopIteration as end:
                result: RunResult = end.value
                return result

    def _asked(self, ask: Ask) -> object:
        """The approver's answer; None, which is no yes, where there is none."""
        try:
            return None if self._approver is None else self._approver(ask)
        except Exception:
            return None

    # ---- a run ----

    def _drive(self, prompt: str | None) -> Generator[Round | Ask, object, RunResult]:
        self._must_be_free()
        if prompt is None and not self._history:
            raise ValueError("there is no history to go on from; give a prompt")
        for observer in self._observers:
            observer.begin_run()
        rounds: list[Round] = []
        audit: list[AuditRecord] = []
        notes: list[str] = []
        may_go_on = True  # a Stop hook asks for one more round once in a run
        if prompt is not None:
            self._history.extend(self._opening(prompt, notes))
        while True:
            self._latest = self._round(len(rounds) + 1, audit, notes)
            done = yield from self._latest
            if done.stop_reason == "completed" and (more := self._stop_hooks(notes)):
                if may_go_on:
                    may_go_on = False
                    self._history.extend(more)
                    done = done._replace(stop_reason="max_rounds" if done.number >= self._max_rounds else None)
                else:
                    notes.append("a Stop hook asked for one more round again; it may do so once in a run")
            if notes:
                done = done._replace(notes=tuple(notes))
                notes = []
            rounds.append(done)
            yield done
            if done.stop_reason:
                break
            self._must_be_free()
        self._check_pairing()
        return RunResult(_last_text(done), done.stop_reason, tuple(rounds), tuple(audit), self.history)

    def _must_be_free(self) -> None:
        if self._latest and getgeneratorstate(self._latest) in (GEN_RUNNING, GEN_SUSPENDED):
            raise RuntimeError("this agent is in the middle of a round: answer its Ask, or close that generator first")

    def _opening(self, prompt: str, notes: list[str]) -> list[Message]:
        """The user message, and behind it what hooks want to add."""
        opening: list[Message] = [UserMessage(prompt)]
        for hook in self._hooks.UserPromptSubmit:
            opening.extend(context_message(_tolerant("UserPromptSubmit", hook, notes, prompt)))
        return opening

    def _stop_hooks(self, notes: list[str]) -> list[Message]:
        """What Stop hooks say to go on with."""
        said: list[Message] = []
        for hook in self._hooks.Stop:
            answer = _tolerant("Stop", hook, notes, tuple(self._history))
            if answer.message:
                said.append(UserMessage(answer.message))
        return said

    # ---- a round ----

    def _round(self, number: int, audit: list[AuditRecord], notes: list[str]) -> Generator[Ask, object, Round]:
        """One request, its reply settled and committed. What went wrong without stopping it goes to `notes`."""
        before = self._view()
        request = self._request()
        at = len(self._history)
        reply = _with_ids(self._model.complete(request), at)
        turn = _Turn(reply, audit, notes)
        try:
            for call in reply.tool_calls:
                turn.settled.append((yield from self._settle(call, turn)))
            self._commit(turn, at)
        except BaseException:
            self._commit(turn, at)  # subtle: again, where the interrupt came in the middle of committing
            raise
        kept = self._record(reply)
        self._history += kept
        self._history += turn.context
        settled, context = tuple(turn.settled), tuple(turn.context)
        stop = self._stop_reason(number, reply, turn.stopped)
        return Round(number, request, reply, settled, kept, context, before, self._view(), (), stop)

    def _commit(self, turn: "_Turn", at: int) -> None:
        """The reply and a result for each of its calls into the history, in one act, if they are not there yet."""
        turn.close()
        whole: list[Message] = [turn.reply, *[ToolMessage(call.id, result.content) for call, result, _ in turn.settled]]
        if len(self._history) == at:
            self._history.extend(whole)

    def _view(self) -> Any:
        """What the first observer knows now."""
        return self._observers[0].view() if self._observers else None

    def _request(self) -> ModelRequest:
        """[system prompt, *history, *guidance], checked."""
        self._check_pairing()
        guidance: tuple[Message, ...] = ()
        for observer in self._observers:
            guidance += tuple(observer.before_model())
        return ModelRequest(MessageView(self._history, self._system, guidance), self._registry.tools)

    def _check_pairing(self) -> None:
        """Check what was added since the last check."""
        check_pairing(self._history[self._paired :])
        self._paired = len(self._history)

    def _record(self, reply: AssistantMessage) -> tuple[Message, ...]:
        """Tell the observers of a round with calls; what they return stays."""
        if not reply.tool_calls:
            return ()
        names = tuple([call.name for call in reply.tool_calls])
        kept: tuple[Message, ...] = ()
        for observer in self._observers:
            kept += tuple(observer.record_tool_round(names))
        return kept

    def _stop_reason(self, number: int, reply: AssistantMessage, stopped: bool) -> StopReason | None:
        """Why the run ends here, or None. Calls decide whether there is more to do; `finish_reason` does not."""
        if reply.tool_calls:
            return "hook_stopped" if stopped else "max_rounds" if number >= self._max_rounds else None
        if reply.refusal:
            return "refusal"
        if reply.finish_reason == "content_filter":
            return "content_filter"
        if reply.finish_reason == "length":
            return "length"
        return "completed" if reply.content.strip() else "empty_reply"

    # ---- a call ----

    def _settle(self, call: ToolCall, turn: "_Turn") -> Generator[Ask, object, Settled]:
        """prepare, PreToolUse, permission, handler, PostToolUse. Each may end it with a result."""
        if turn.reply.finish_reason == "length":
            return Settled(call, _TRUNCATED)
        if turn.stopped:
            return Settled(call, _HOOK_STOPPED)
        prepared = self._registry.prepare(call)
        if isinstance(prepared, ToolResult):
            return Settled(call, prepared)
        recommended: Decision | None = None
        if self._hooks.PreToolUse:
            found = self._before_tool(prepared, turn)
            if isinstance(found, ToolResult):
                return Settled(call, found)
            prepared, recommended = found
        record: AuditRecord | None = None
        if self._policy:
            record = self._policy.judge(prepared, recommended)
            if record.decision == "ask":
                record = record.settled((yield Ask(prepared.call, prepared.tool, record.reason)))
            record, refusal = self._audited(record, turn)
            if refusal:
                return Settled(call, refusal, record)
        result = self._registry.invoke(prepared)
        if self._hooks.PostToolUse:
            result = self._after_tool(prepared, result, turn)
        return Settled(call, result, record)

    def _audited(self, record: AuditRecord, turn: "_Turn") -> tuple[AuditRecord, ToolResult | None]:
        """The record, written down; and the refusal, if the call must not run."""
        try:
            if self._sink is not None:
                self._sink(record)
        except Exception as error:
            reason = f"the audit sink raised {type(error).__name__}"
            record = record._replace(decision="deny", source="audit", reason=reason)
            turn.audit.append(record)
            text = f"{record.tool} was not run, since its audit entry could not be written."
            return record, ToolResult.refusal("permission_evaluation_error", text)
        turn.audit.append(record)
        if record.decision == "allow":
            return record, None
        by = "nobody said yes" if record.asked else "denied"
        return record, ToolResult.refusal("permission_denied", f"{record.tool} was not run ({by}): {record.reason}.")

    def _before_tool(self, prepared: PreparedCall, turn: "_Turn") -> tuple[PreparedCall, Decision | None] | ToolResult:
        """The call as the PreToolUse hooks leave it and the strictest recommendation, or why it is blocked."""
        recommended: list[Decision] = []
        try:
            for hook in self._hooks.PreToolUse:
                answer = ask_hook("PreToolUse", hook, prepared)
                turn.context.extend(context_message(answer))
                if answer.deny is not None:
                    return ToolResult.refusal("hook_denied", f"{prepared.tool.name} was not run: {answer.deny}")
                if answer.arguments is not None:
                    prepared = self._rewritten(prepared, answer.arguments)
                if answer.recommend:
                    recommended.append(answer.recommend)
        except HookFailure as failure:
            return ToolResult.refusal(failure.code, f"{prepared.tool.name} was not run: {failure}")
        strictest: tuple[Decision, ...] = ("deny", "ask", "allow")
        return prepared, next((one for one in strictest if one in recommended), None)

    def _rewritten(self, prepared: PreparedCall, arguments: Any) -> PreparedCall:
        """The same call with a hook's arguments, prepared as if the model had sent them."""
        try:
            again = self._registry.prepare(replace(prepared.call, arguments=arguments))
        except Exception as error:
            words = f"a PreToolUse hook's arguments are no JSON ({words_of(error)})"
            raise HookFailure("hook_contract_error", words) from error
        if isinstance(again, ToolResult):
            raise HookFailure("hook_contract_error", f"a PreToolUse hook's arguments do not fit: {again.content}")
        return again

    def _after_tool(self, prepared: PreparedCall, result: ToolResult, turn: "_Turn") -> ToolResult:
        """The result as the PostToolUse hooks leave it."""
        for hook in self._hooks.PostToolUse:
            answer = _tolerant("PostToolUse", hook, turn.notes, prepared, result)
            turn.context.extend(context_message(answer))
            if answer.output is not None:
                result = checked_result(answer.output)
            turn.stopped = turn.stopped or answer.stop
        return result


class _Turn:
    """What a round gathers while its calls are settled."""

    __slots__ = ("audit", "context", "notes", "reply", "settled", "stopped")

    def __init__(self, reply: AssistantMessage, audit: list[AuditRecord], notes: list[str]) -> None:
        self.reply = reply
        self.audit = audit
        self.notes = notes
        self.settled: list[Settled] = []
        self.context: list[Message] = []
        self.stopped = False

    def close(self) -> None:
        """Cancel the calls that an interrupt left open; then there is one entry for each call."""
        for call in self.reply.tool_calls[len(self.settled) :]:
            self.settled.append(Settled(call, _CANCELLED))


_CANCELLED = ToolResult.refusal("cancelled", "the run was interrupted; whether this call took effect is not known.")
_HOOK_STOPPED = ToolResult.refusal("hook_stopped", "not run, since a hook stopped the run before it.")
_TRUNCATED = ToolResult.refusal(
    "truncated", "the reply was cut off by its length limit, so none of its calls was run. Send it again, shorter."
)


def _tolerant(event: str, hook: Callable[..., object], notes: list[str], *seen: object) -> HookAnswer:
    """Ask a hook whose failure must lose nothing: it is noted, and the answer is none."""
    try:
        return ask_hook(event, hook, *seen)
    except HookFailure as failure:
        notes.append(f"{failure.code}: {failure}")
        return HookAnswer()


def _with_ids(reply: AssistantMessage, at: int) -> AssistantMessage:
    """The reply with an id of its own for each call; those a server left out or gave twice are made from the place."""
    if not isinstance(reply, AssistantMessage):
        raise TypeError(f"a model client returns an AssistantMessage, not {type(reply).__name__}")
    taken = {call.id for call in reply.tool_calls}
    if len(taken) == len(reply.tool_calls) and "" not in taken:
        return reply
    seen: set[str] = set()
    calls = []
    for index, call in enumerate(reply.tool_calls):
        name = call.id
        if not name or name in seen:
            name = f"{name or 'call'}_{at}_{index}"
            while name in taken:
                name += "_"
        seen.add(name)
        calls.append(replace(call, id=name))
    return replace(reply, tool_calls=tuple(calls))


def _last_text(last: Round) -> str:
    """What a run has to say in the end."""
    if last.stop_reason == "refusal":
        return last.reply.refusal or ""
    if last.stop_reason == "hook_stopped":
        return next((one.result.content for one in reversed(last.settled) if one.result.error != "hook_stopped"), "")
    return last.reply.content
