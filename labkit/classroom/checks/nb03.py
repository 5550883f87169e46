"""Notebook 03, the loop: finish it, give it a tool, end it at a limit."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labkit.classroom.checks.common import NotYet, function_wanted, require
from labkit.clients.scripted import ScriptedModelClient, call, say
from labkit.errors import PairingError, ScriptError
from labkit.messages import ToolMessage, ToolResult, UserMessage
from labkit.model import check_pairing
from labkit.tools import PreparedCall, ToolDefinition, ToolInput, ToolRegistry


class _Word(ToolInput):
    word: str


class _Bench:
    """A registry with one tool that remembers its words, and a scripted model."""

    def __init__(self, *script: Any) -> None:
        self.words: list[str] = []
        self.registry = ToolRegistry((ToolDefinition("echo", "Say it back.", _Word, "read", self._echo),))
        self.model = ScriptedModelClient(script)

    def _echo(self, given: Any) -> ToolResult:
        self.words.append(given.word)
        return ToolResult(f"echo {given.word}")

    def history(self, loop: Callable[..., Any], *more: Any) -> Any:
        try:
            return loop(self.model, self.registry, "go", *more)
        except ScriptError:
            raise NotYet("stops") from None
        except PairingError:
            raise NotYet("paired") from None


def _echo(word: str) -> Any:
    return call("echo", word=word)


def _paired(history: Sequence[Any]) -> None:
    try:
        check_pairing(history)
    except PairingError:
        raise NotYet("paired") from None


def check_03_1(loop: Any) -> None:
    """finish_loop(model, registry, prompt): ask, run each call, put it all into the history, ask again."""
    function_wanted(loop)
    bench = _Bench([_echo("a"), _echo("b"), _echo("c")], _echo("d"), say("done"))
    history = bench.history(loop)
    require(isinstance(history, list) and history, "shape", wanted="function_of_history")
    require(isinstance(history[0], UserMessage), "begins_with_the_prompt")
    require(bench.words, "runs_the_tool")
    require(bench.words[:3] == ["a", "b", "c"], "each_call", count=3)
    require(len(bench.model.requests) > 1, "asks_again")
    require(bench.words == ["a", "b", "c", "d"] and len(bench.model.requests) == 3, "asks_again")
    results = [one.content for one in history if isinstance(one, ToolMessage)]
    require(results == [f"echo {word}" for word in "abcd"], "results_in_history")
    _paired(history)
    require(getattr(history[-1], "content", None) == "done", "ends_with_the_answer")
    require([len(one.messages) for one in bench.model.requests] == [1, 5, 7], "model_sees_the_results")
    bench = _Bench(call("made_up", x=1), say("sorry"))
    try:
        history = bench.history(loop)
    except NotYet:
        raise
    except Exception:
        raise NotYet("unknown_tool") from None
    require(any(isinstance(one, ToolMessage) and "unknown_tool" in one.content for one in history), "unknown_tool")


def check_03_2(register: Any) -> None:
    """register_read_file(registry, folder): a tool that reads in one folder and nowhere else."""
    function_wanted(register)
    with tempfile.TemporaryDirectory() as outer:
        place = Path(outer, "workspace")
        place.mkdir()
        Path(place, "a.txt").write_text("hello", encoding="utf-8")
        Path(outer, "secret.txt").write_text("secret", encoding="utf-8")
        registry = ToolRegistry()
        register(registry, place)
        require(registry.names, "registered")
        require(registry.names == ("read_file",), "named", name=registry.names[0])
        require(registry.tools[0].effect == "read", "effect", effect=registry.tools[0].effect)

        def use(path: str) -> ToolResult:
            prepared = registry.prepare(call("read_file", path=path))
            require(isinstance(prepared, PreparedCall), "takes_a_path")
            assert isinstance(prepared, PreparedCall)
            return registry.invoke(prepared)

        result = use("a.txt")
        require(result.error != "invalid_tool_result", "returns_a_tool_result")
        require(result.error is None, "reads_the_file")
        require(result.content == "hello", "reads_the_file")
        Path(place, "a.txt").write_text("编写", encoding="utf-8")
        require(use("a.txt").content == "编写", "reads_now_and_utf8")
        require(use("no.txt").error is not None, "missing_is_an_error")
        require("secret" not in use("../secret.txt").content, "stays_inside")


def check_03_3(loop: Any) -> None:
    """limited_loop(model, registry, prompt, max_rounds): so many requests at the most, and a paired history."""
    function_wanted(loop)
    bench = _Bench(*[[_echo("a"), _echo("b")] for _ in range(8)])
    answer = bench.history(loop, 3)
    require(isinstance(answer, tuple) and len(answer) == 2, "shape", wanted="function_of_two")
    history, reason = answer
    made = len(bench.model.requests)
    require(made <= 3, "no_more_requests", count=made)
    require(made == 3, "all_rounds", count=made)
    require(len(bench.words) == 6, "last_calls_run")
    _paired(history)
    require(len([one for one in history if isinstance(one, ToolMessage)]) == 6, "last_results_kept")
    require(reason == "max_rounds", "says_why", reason=reason)
    for script, limit in (([say("done")], 3), ([_echo("a"), say("done")], 2)):
        bench = _Bench(*script)
        history, reason = bench.history(loop, limit)
        require(history[-1].content == "done", "answers_in_time")
        require(reason == "completed", "completed", reason=reason)
