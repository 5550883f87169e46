"""A served model: any server that speaks OpenAI's Chat Completions, by the `openai` package.

Read `OpenAIModelClient.complete` first, then `_exchange`. This is the only room that knows keys and addresses; what
servers answer is read in `replies`, tools for servers that have no place for them are in `told`. `openai` is imported
when a client is made, never before, so that everything scripted works without it.
"""

import os
import re
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit, urlunsplit

from pydantic_core import to_json

from labkit.clients.replies import BadReply, Pieces, decoded, events, whole, words_of
from labkit.clients.told import heard, reply_format, told
from labkit.errors import ModelError, SettingsError
from labkit.messages import AssistantMessage, Message, SystemMessage
from labkit.model import ModelRequest

API_KEY = "OPENAI_API_KEY"
BASE_URL = "OPENAI_BASE_URL"
MODEL = "OPENAI_MODEL"
SETTINGS = (API_KEY, BASE_URL, MODEL)
"""The three settings of a live model: environment variables, read in `OpenAIModelClient.from_env` and nowhere else."""

Calls = Literal["native", "json_schema", "text"]
"""How a server is made to call tools: by its own tool calls; by a grammar for the reply; by asking in words only."""

SystemRole = Literal["system", "developer", "user"]

_OURS = ("messages", "model", "response_format", "stream", "tools")
_ENDPOINT = "/chat/completions"


class Usage(NamedTuple):
    """What was spent so far. A server that reports no tokens leaves those at 0."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class OpenAIModelClient:
    """A model behind an address.

    timeout            the most seconds that one request takes in all, with retries, and however slow the server drips
    stream, on_text    have the reply sent piece by piece; `on_text` gets each piece of its text
    calls              see `Calls`
    late_system_role   the role on the wire of system messages behind the first: some servers refuse "system" there
    options            joins the body of each request: temperature, max_tokens, seed, ...
    retries            so often is a request sent again after a 429 or a 5xx
    max_requests       a cap on what is sent in the client's life, retries included; None for no cap

    SettingsError for an address that is none; ValueError for the other arguments.
    """

    model: str = ""  # defaults, since a traceback may show a client that was not made to the end
    address: str = ""
    calls: Calls = "native"

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str,
        timeout: float = 60,
        stream: bool = False,
        on_text: Callable[[str], object] | None = None,
        calls: Calls = "native",
        late_system_role: SystemRole = "system",
        options: Mapping[str, Any] | None = None,
        retries: int = 2,
        max_requests: int | None = None,
    ) -> None:
        key = api_key = _Key(api_key.strip())
        if not re.fullmatch("[!-~]+", key):
            raise SettingsError(f"{API_KEY} is blank or holds characters that no key has (a blank, a curly quote?)", ())
        _must_be("calls", calls, get_args(Calls))
        _must_be("late_system_role", late_system_role, get_args(SystemRole))
        if taken := sorted(set(options or ()) & set(_OURS)):
            raise ValueError(f"options= must not hold {', '.join(taken)}, which the client sets itself")
        base, self.address = _addresses(base_url)
        self.model = model
        self.calls = calls
        self.usage = Usage()
        self.timeout = timeout
        self._stream = stream
        self._on_text = on_text or (lambda text: None)
        self._late_system_role: SystemRole = late_system_role
        self._head = to_json({"model": model, **(options or {})})[:-1]
        self._retries = retries
        self._max_requests = max_requests
        self._secret = _Secret(key)
        self._sent = [_Sent(late_system_role)]
        self._hold, self._post, close = _connection(base, key, timeout)
        # subtle: nobody declares when an agent's client has done its work, and a socket left open is a warning
        self.close = weakref.finalize(self, close)

    @classmethod
    def from_env(cls, **options: Any) -> "OpenAIModelClient":
        """The client that the three settings name. SettingsError names all that are missing or blank, at once."""
        found = {name: _Key(os.environ.get(name, "").strip()) for name in SETTINGS}
        missing = tuple(name for name in SETTINGS if not found[name])
        if missing:
            raise SettingsError(
                f"a live model needs {', '.join(missing)}: set {'it' if len(missing) == 1 else 'them'} "
                "(`labkit serve` starts a small model here and prints all three), or go on offline with --script FILE",
                missing,
            )
        return cls(api_key=found[API_KEY], base_url=str(found[BASE_URL]), model=str(found[MODEL]), **options)

    def __repr__(self) -> str:
        return f"OpenAIModelClient(model={self.model!r}, address={self.address!r}, calls={self.calls!r})"

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """The server's reply. ModelError names the address, the cause and what to do."""
        body = self._body(request)
        until = time.monotonic() + self.timeout
        with self._hold(until):
            for tries in range(1, self._retries + 2):
                outcome = self._exchange(body, show=self._stream and not self._tells(request))
                if isinstance(outcome, AssistantMessage):
                    return self._heard(outcome, request)
                failure = outcome
                pause = failure.pause(tries)
                if pause is None or tries > self._retries or time.monotonic() + pause >= until:
                    break
                time.sleep(pause)
        # subtle: raised out here, where no exception of the SDK is being handled. Theirs can quote what a server said
        # of the key, and would be shown, with their frames, as the context of ours.
        after = f" (tried {tries} times)" if tries > 1 else ""
        raise ModelError(f"{self.address}: {failure.cause}{after}. {failure.advice}")

    def _tells(self, request: ModelRequest) -> bool:
        """Whether the tools are told in words, so that the reply's text is not for people."""
        return self.calls != "native" and bool(request.tools)

    # ---- what is sent ----

    def _body(self, request: ModelRequest) -> bytes:
        """The request as JSON."""
        parts = [self._head]
        if self.calls == "native":
            try:
                sent = self._sent.pop()  # subtle: taken away while in use, so that two threads never share one
            except IndexError:
                sent = _Sent(self._late_system_role)
            parts += [b',"messages":[', sent.messages(request), b"]", sent.tools(request)]
            self._sent[:] = [sent]
        else:
            parts += [b',"messages":', to_json(told(request.messages, request.tools, self._late_system_role))]
            if self.calls == "json_schema" and request.tools:
                parts += [b',"response_format":', to_json(reply_format(request.tools))]
        if self._stream:
            parts.append(b',"stream":true')
        return b"".join([*parts, b"}"])

    # ---- what comes back ----

    def _exchange(self, body: bytes, show: bool) -> "AssistantMessage | _Failure":
        """Send once; the reply, or what went wrong. Only what `on_text` raises leaves here as an exception."""
        if self._max_requests is not None and self.usage.requests >= self._max_requests:
            return _Failure(f"the cap of {self._max_requests} requests is reached", "Raise max_requests= to send more.")
        self.usage = self.usage._replace(requests=self.usage.requests + 1)
        try:
            response = self._post(body, self._stream)
        except Exception as error:
            return self._refused(error)
        try:
            if "text/event-stream" in response.headers.get("content-type", ""):
                return self._streamed(response, show)
            return self._whole(response, show)
        except _Broken as broken:
            return self._broken(broken.args[0])
        except BadReply as error:
            return self._unusable(error)
        finally:
            response.close()

    def _whole(self, response: Any, show: bool) -> AssistantMessage:
        """A reply in one piece; also from a server that was asked to stream and does not."""
        answer = decoded(b"".join(_chunks(response)))
        reply = whole(answer)
        self._count(answer)
        if show and reply.content:
            self._on_text(reply.content)
        return reply

    def _streamed(self, response: Any, show: bool) -> AssistantMessage:
        """A reply piece by piece."""
        pieces, ended = Pieces(), False
        for data in events(_chunks(response)):
            if data == "[DONE]":
                ended = True
                break
            piece = decoded(data)
            text = pieces.add(piece)
            self._count(piece)
            if show and text:
                self._on_text(text)
        return pieces.message(ended=ended)

    def _count(self, answer: Any) -> None:
        """Add the tokens that an answer reports."""
        reported = answer.get("usage")
        if isinstance(reported, dict):
            prompt, completion = (reported.get(f"{name}_tokens") or 0 for name in ("prompt", "completion"))
            requests, before, after = self.usage
            self.usage = Usage(requests, before + prompt, after + completion)

    def _heard(self, reply: AssistantMessage, request: ModelRequest) -> AssistantMessage:
        if not self._tells(request):
            return reply
        reply = heard(reply)
        if self._stream and reply.content:
            self._on_text(reply.content)
        return reply

    # ---- what went wrong, in words ----

    def _refused(self, error: Exception) -> "_Failure":
        """No answer, or one with a status that says no."""
        status = getattr(error, "status_code", None)
        if status is None:
            return self._broken(error)
        response: Any = getattr(error, "response", None)
        said = self._quoted(getattr(error, "body", None) or response.text)
        advice = {
            400: "If it minds a system message, try late_system_role='user'; if it minds tools, calls='json_schema'.",
            401: f"Set {API_KEY} to a key of this server.",
            403: f"Set {API_KEY} to a key that may use this model.",
            404: f"{BASE_URL} usually ends in /v1; see also that the server has the model {self.model!r} ({MODEL}).",
            413: "The request is too long for it: begin a new history.",
            422: "If it minds tools, try calls='json_schema'.",
            429: "It has no capacity or quota left for you: wait, or use another key or server.",
        }.get(status, "The fault is the server's: try again later." if status >= 500 else f"Check {BASE_URL}.")
        # subtle: what a server says to a wrong key is that key, with some stars in it
        cause = f"it answered {status}" + (f" ({said})" if said and status not in (401, 403) else "")
        return _Failure(cause, advice, status, response.headers.get("retry-after"))

    def _broken(self, error: BaseException) -> "_Failure":
        """The connection failed, or the time was up."""
        chain = [error]
        while chain[-1].__cause__ and len(chain) < 9:
            chain.append(chain[-1].__cause__)
        names = [type(one).__name__ for one in chain]
        if any("Timeout" in name for name in names):
            return _Failure(
                f"no whole answer within {self.timeout:g} s", "See that the server is up, or give a longer timeout=."
            )
        said = self._quoted(str(chain[-1]) or names[-1])
        if "ConnectError" in names:
            return _Failure(f"no connection ({said})", f"Start the server, or set {BASE_URL} to where it is.")
        return _Failure(
            f"the connection broke off ({said})", "Try again; the history is as it was before this request."
        )

    def _unusable(self, error: BadReply) -> "_Failure":
        """An answer, but no reply in it."""
        advice = f"{BASE_URL} usually ends in /v1." if error.elsewhere else "Try again, or ask who runs the server."
        return _Failure(f"the answer cannot be used: {self._quoted(str(error))}", advice)

    def _quoted(self, said: object) -> str:
        """Foreign words in one short line, without anything that could be of the key."""
        shown = self._secret.hidden(" ".join(words_of(said).split()))
        return (shown if len(shown) <= 300 else shown[:300] + "...").rstrip(".")


class _Failure(NamedTuple):
    """Why an exchange gave no reply, what to do, and when it may be tried again."""

    cause: str
    advice: str
    status: int = 0
    retry_after: str | None = None

    def pause(self, tries: int) -> float | None:
        """Seconds to wait before the next try; None where it would not help."""
        if self.status != 429 and self.status < 500:
            return None
        try:
            return max(0.0, float(self.retry_after or ""))
        except ValueError:
            return 0.25 * 2.0**tries


class _Broken(Exception):
    """The connection failed while an answer was read."""


class _Key(str):
    """A text that no traceback shows among its variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"


class _Secret:
    """Finds the key, and what looks like a part of it, in foreign words."""

    def __init__(self, key: str) -> None:
        self._parts = frozenset(key[at : at + 4] for at in range(len(key) - 3))

    def hidden(self, text: str) -> str:
        """The text with [key] for every run of characters that has four in a row of the key."""
        out: list[str] = []
        kept = 0
        for at in range(len(text) - 3):
            if text[at : at + 4] in self._parts:
                if at > kept or not out:
                    out += [text[kept:at], "[key]"]
                kept = at + 4
        return "".join(out) + text[kept:]


class _Sent:
    """The last request in the wire form. A history only grows, so of the next one only its end is new."""

    def __init__(self, late_system_role: SystemRole) -> None:
        self._role = late_system_role
        self._messages: list[Message] = []
        self._ends: list[int] = []
        self._text = bytearray()
        self._tools: object = None
        self._listed = b""

    def messages(self, request: ModelRequest) -> bytes:
        """All messages, with commas between them."""
        same = 0
        for old, new in zip(self._messages, request.messages, strict=False):
            if old is not new:
                break
            same += 1
        del self._messages[same:], self._ends[same:], self._text[self._ends[same - 1] if same else 0 :]
        for message in islice(request.messages, same, None):
            self._text += b"," * bool(self._messages) + to_json(self._wire(message))
            self._messages.append(message)
            self._ends.append(len(self._text))
        return bytes(self._text)

    def _wire(self, message: Message) -> dict[str, Any]:
        wire = message.to_openai()
        if isinstance(message, SystemMessage) and self._messages:
            wire["role"] = self._role
        return wire

    def tools(self, request: ModelRequest) -> bytes:
        """The body's tools; nothing where there are none, for some servers refuse an empty list."""
        if request.tools is not self._tools:
            listed = [tool.to_openai() for tool in request.tools]
            self._listed = b',"tools":' + to_json(listed) if listed else b""
            self._tools = request.tools
        return self._listed


def _chunks(response: Any) -> Iterator[bytes]:
    """The bytes of an answer; whatever the network raises becomes _Broken."""
    try:
        yield from response.iter_bytes()
    except Exception as error:
        raise _Broken(error) from error


def _must_be(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: use one of {', '.join(map(repr, allowed))}")


def _addresses(base_url: str) -> tuple[str, str]:
    """The base as the SDK wants it, and the address to show: without a password, in full."""
    base = base_url.strip().rstrip("/").removesuffix(_ENDPOINT)
    parts = urlsplit(base)
    try:
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise SettingsError(f"{BASE_URL} must be an address such as http://127.0.0.1:8080/v1", ())
    host = parts.netloc.rpartition("@")[2]
    return base, urlunsplit((parts.scheme, host, parts.path + _ENDPOINT, "", ""))


def _connection(
    base: str, key: str, timeout: float
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[[], None]]:
    """How to hold to a moment, how to post a body, how to close."""
    try:
        import httpx2
        import openai
    except ImportError:
        raise ModelError(
            "a live model needs the openai package: install the extra `live` (pip install 'agent-loop-lab[live]')"
        ) from None
    hold: Callable[..., Any] = nullcontext  # in a browser there is no socket to hold: the time is for each read
    http = None
    if sys.platform != "emscripten":
        from labkit.clients.deadline import Transport, Until

        until = Until()
        hold, http = until.held, openai.DefaultHttpxClient(transport=Transport(base, until))
    client = openai.OpenAI(api_key=key, base_url=base, timeout=timeout, max_retries=0, http_client=http)

    def post(body: bytes, stream: bool) -> httpx2.Response:
        # subtle: ready bytes and the raw response. The typed way walks every message of the history in each request.
        response = client.post(
            _ENDPOINT, content=body, cast_to=httpx2.Response, stream=stream, stream_cls=openai.Stream[object]
        )
        assert isinstance(response, httpx2.Response)
        return response

    return hold, post, client.close
