"""The command line: `labkit run`, the chapters' entries, `labkit serve`. Reads arguments, prints frames, asks a person.

Read `run` first. Exit codes: 0 completed, 1 ended otherwise, 2 usage or settings, 130 interrupted.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from typing import Any

from labkit.clients.scripted import Entry, ScriptedModelClient, call, reply, say
from labkit.errors import LabkitError
from labkit.frames import checklist, completed, cut, framed
from labkit.loop import Round, RunResult
from labkit.messages import AssistantMessage, ToolCall
from labkit.model import ModelClient, ModelRequest
from labkit.permissions import Ask
from labkit.profiles import PROFILES, Agent, build_agent

COMPLETED, ENDED_OTHERWISE, USAGE, INTERRUPTED = 0, 1, 2, 130

SCRIPT_FORM = """\
A script is a JSON list; each entry is one reply of the model:
  {"say": "text"}
  {"call": "read_file", "arguments": {"path": "a.txt"}}     arguments may also be raw text; "id" fixes an id
  {"calls": [{"call": ...}, {"call": ...}]}                 several calls in one message
  {"reply": {"text": "...", "calls": [...], "finish_reason": "length", "refusal": "..."}}
Two examples are in notebooks/scripts."""


def main(argv: Sequence[str] | None = None) -> int:
    """The router. Returns an exit code; usage errors leave by SystemExit(2), as argparse has it."""
    _let_every_character_through()
    parser = argparse.ArgumentParser(prog="labkit", description="An agent loop that is read in an evening.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{run,serve}")
    running = commands.add_parser(
        "run",
        help="run a prompt through one of the five profiles",
        epilog=SCRIPT_FORM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    running.add_argument("--chapter", type=int, choices=range(1, 6), required=True, help="1 to 5: which profile")
    _add_run_options(running)
    commands.add_parser("serve", add_help=False, help="serve a small model on this machine")
    given, rest = parser.parse_known_args(argv)
    if given.command == "serve":
        from labkit.classroom.serve import serve

        return serve(rest)
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}; `labkit run --help` lists the options")
    return run(given)


def chapter_entry(chapter: int) -> Callable[..., int]:
    """The entry of one chapter: the options of `labkit run`, the chapter fixed."""

    def entry(argv: Sequence[str] | None = None) -> int:
        _let_every_character_through()
        parser = argparse.ArgumentParser(
            prog=f"python -m labkit.chapters.ch{chapter:02}",
            description=f"Chapter {chapter}: {PROFILES[chapter - 1].title}.",
            epilog=SCRIPT_FORM,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--chapter", help=argparse.SUPPRESS)
        _add_run_options(parser)
        given = parser.parse_args(argv)
        if given.chapter is not None:
            print(f"note: --chapter {given.chapter} is ignored; this is the entry of chapter {chapter}")
        given.chapter = chapter
        return run(given)

    return entry


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prompt", required=True, help="what the person says")
    parser.add_argument("--workspace", default=".", help="the folder that the tools may touch (default: this one)")
    parser.add_argument("--script", metavar="FILE", help="a script in JSON: runs offline")
    parser.add_argument("--calls", help="how a live server is made to call tools: native (default), json_schema, text")
    parser.add_argument(
        "--late-system-role", help="role of system messages behind the first, for servers that refuse it"
    )
    parser.add_argument("--max-rounds", type=_at_least_one, default=20, help="the most rounds of the run (default: 20)")


def _at_least_one(text: str) -> int:
    """A whole number from 1 on; argparse names the option."""
    if not (text.isdecimal() and len(text) < 10 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{cut(text, 80)!r} is no whole number of at least 1, below a billion")
    return int(text)


def run(given: argparse.Namespace) -> int:
    """One prompt through one profile. Returns the exit code."""
    try:
        try:
            agent = _agent(given)
        except (LabkitError, ScriptFileError, ValueError) as error:
            return _failed(error, USAGE)
        try:
            return _shown(agent, given)
        except LabkitError as error:
            return _failed(error, ENDED_OTHERWISE)
    except KeyboardInterrupt:
        print("\nlabkit: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        # the output takes no more: its reader left, as `head` does, or a disk is full; at its exit Python would say so
        # once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ENDED_OTHERWISE if isinstance(error, BrokenPipeError) else _failed(error, ENDED_OTHERWISE)


def _agent(given: argparse.Namespace) -> Agent:
    """The agent that the options describe."""
    profile = PROFILES[given.chapter - 1]
    parts: dict[str, Any] = {"max_rounds": given.max_rounds}
    if "tools" in profile.capabilities:
        parts["workspace"] = given.workspace
    if "permissions" in profile.capabilities:
        parts["approver"] = ask_on_terminal
    return build_agent(profile, _model(given), **parts)


def _shown(agent: Agent, given: argparse.Namespace) -> int:
    """The run, each round as a frame and a line of progress, then the list and how it ended."""
    ended: list[RunResult] = []
    for frame in framed(_keeping(agent.rounds(given.prompt), ended)):
        print(frame)
        print(_progress(frame.number, given.max_rounds, agent.todos), flush=True)
    result = ended[0]
    if agent.todos:
        print("the list:", *[f"  {line}" for line in checklist(agent.todos)], sep="\n")
    count = len(result.rounds)
    print(f"ended: {result.stop_reason}, after {count} round{'s' * (count != 1)}")
    print(cut(result.text, None), flush=True)
    return COMPLETED if result.stop_reason == "completed" else ENDED_OTHERWISE


def _keeping(rounds: Generator[Round, None, RunResult], ended: list[RunResult]) -> Generator[Round, None, None]:
    """The rounds, and behind the last one the result into `ended`."""
    ended.append((yield from rounds))


def _progress(number: int, most: int, todos: Sequence[Any]) -> str:
    plan = f"; the list: {completed(todos)} of {len(todos)} completed" if todos else ""
    return f"--- round {number} of at most {most}{plan}\n"


def _failed(error: Exception, code: int) -> int:
    print(f"labkit: {error}", file=sys.stderr)
    return code


def ask_on_terminal(ask: Ask) -> str:
    """Put the question to whoever sits at the terminal; with no terminal the answer is deny, and that is said."""
    # subtle: whole, and with escapes for what cannot be seen; nobody should allow what was cut off or hidden
    question = f"{ask.tool.name} wants to run: {cut(ask.call.arguments, None)}\n  {ask.reason}"
    if not (sys.stdin and sys.stdin.isatty()):
        print(f"{question}\n  no terminal to ask on, so the answer is deny")
        return "deny"
    terminal = sys.stdout if sys.stdout.isatty() else sys.stderr
    print(f"{question}\n  Allow? [y/N] ", end="", file=terminal, flush=True)
    answer = input()  # an end of input raises, and an approver that raises has not said yes
    return "allow" if answer.strip().lower() in ("y", "yes") else "deny"


# ---- the model ----


_REPLY_TEXTS = ("text", "finish_reason", "refusal")


class ScriptFileError(Exception):
    """A script file that cannot be read. The message says which entry, and how to write it."""


def _model(given: argparse.Namespace) -> ModelClient:
    if given.script is not None:
        return ScriptedModelClient(read_script(given.script))
    from labkit.clients.openai import OpenAIModelClient

    options = {name: value for name in ("calls", "late_system_role") if (value := getattr(given, name)) is not None}
    client = OpenAIModelClient.from_env(stream=True, on_text=_while_it_comes, **options)
    return _LineAfter(client)


def _while_it_comes(text: str) -> None:
    print(cut(text, None), end="", flush=True)


class _LineAfter:
    """A model whose text is shown while it comes; with its end, the line ends."""

    def __init__(self, model: ModelClient) -> None:
        self._model = model

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """The model's reply."""
        message = self._model.complete(request)
        if message.content:
            print("\n")
        return message


def read_script(file: str | os.PathLike[str]) -> list[Entry]:
    """The entries of a script file. ScriptFileError for a file or an entry that is none."""
    try:
        with open(file, encoding="utf-8-sig") as stream:
            entries = json.load(stream)
    except OSError as error:
        raise ScriptFileError(f"the script {os.fspath(file)} cannot be opened: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ScriptFileError(f"the script {os.fspath(file)} is not JSON in UTF-8: {error}") from error
    if not isinstance(entries, list):
        raise ScriptFileError(f"the script {os.fspath(file)} is not a list.\n{SCRIPT_FORM}")
    return [_entry(entry, f"{os.fspath(file)}, entry {number}") for number, entry in enumerate(entries, 1)]


def _entry(entry: Any, where: str) -> Entry:
    match entry:
        case {"say": str(text), **rest} if not rest:
            return say(text)
        case {"calls": list(calls), **rest} if calls and not rest:
            return [_call(one, where) for one in calls]
        case {"reply": dict(parts), **rest} if not rest and parts.keys() <= {*_REPLY_TEXTS, "calls"}:
            texts: dict[str, Any] = {name: parts.get(name) for name in _REPLY_TEXTS}
            calls = parts.get("calls", [])
            if all(isinstance(text, str | None) for text in texts.values()) and isinstance(calls, list):
                return reply(calls=[_call(one, where) for one in calls], **texts)
    return _call(entry, where)


def _call(entry: Any, where: str) -> ToolCall:
    match entry:
        case {"call": str(name), **rest} if rest.keys() <= {"arguments", "id"}:
            arguments, id = rest.get("arguments", {}), rest.get("id")
            if isinstance(arguments, str | dict) and isinstance(id, str | None):
                return call(name, arguments, id=id)
    raise ScriptFileError(f"{where}: this is no entry: {cut(json.dumps(entry, ensure_ascii=False), 80)}\n{SCRIPT_FORM}")


def _let_every_character_through() -> None:
    """A console that lacks a character shows its escape; it is no reason to end a run."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
