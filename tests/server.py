"""A server on loopback that speaks the Chat Completions protocol, whole or streamed, and misbehaves on demand.

`ModelServer(script)` answers each request with the next entry: a reply (or what else a scripted model takes, by
`labkit`), or one of the misbehaviours below. It keeps the body of each request. Real HTTP, real sockets.
"""

import atexit
import contextlib
import json
import re
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from labkit import AssistantMessage, ScriptedModelClient
from labkit.clients.openai import OpenAIModelClient

KEY = "sk-Zq7XwVb9KjHm8TrPy4Nd"
MODEL = "test-model"


@dataclass
class Raw:
    """An answer word for word."""

    body: Any
    status: int = 200
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def response(self, server: "ModelServer", request: Request) -> Response:
        body = self.body if isinstance(self.body, str | bytes) else json.dumps(self.body)
        return Response(body, self.status, self.headers, content_type=self.type)


@dataclass
class Slow:
    """The right answer, its end kept back: a byte of white space now and then. Ends when the server is closed."""

    reply: AssistantMessage
    drips: int = 100
    pause: float = 0.05

    def response(self, server: "ModelServer", request: Request) -> Response:
        whole = server.answer(self.reply, request)

        def body():
            for _ in range(self.drips):
                if server.closing.wait(self.pause):
                    return
                yield b": drip\n\n" if server.streams(request) else b" "
            yield whole.get_data()

        return Response(body(), 200, content_type=whole.content_type)


@dataclass
class Cut:
    """The right answer, of which only the first part arrives; then the connection closes."""

    reply: AssistantMessage
    part: float = 0.5

    def response(self, server: "ModelServer", request: Request) -> Response:
        whole = server.answer(self.reply, request)
        data = whole.get_data()
        promised = {} if server.streams(request) else {"Content-Length": str(len(data))}
        return Response(iter([data[: int(len(data) * self.part)]]), 200, promised, content_type=whole.content_type)


def completion(message: dict[str, Any], finish_reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    """The JSON of an answer, with the extra fields that servers send."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason, "logprobs": None}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage, **more}


def pieces(message: dict[str, Any], finish_reason: str | None, *, size: int = 3) -> list[dict[str, Any]]:
    """The same message as the chunks of a stream: text and arguments in small parts, then the finish, then usage."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def parts(text: str) -> list[str]:
        return [text[at : at + size] for at in range(0, len(text), size)]

    out = [chunk({"role": "assistant", "content": None})]
    out += [chunk({"content": part}) for part in parts(message.get("content") or "")]
    out += [chunk({"refusal": part}) for part in parts(message.get("refusal") or "")]
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        first = {"index": index, "id": call["id"], "type": "function", "function": {**function, "arguments": ""}}
        out.append(chunk({"tool_calls": [first]}))
        out += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
            for part in parts(function["arguments"])
        ]
    out.append(chunk({}, finish_reason))
    out.append({"id": "x", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    return out


def sse(chunks: list[Any], *, done: bool = True) -> str:
    """Chunks as an event stream."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join(lines) + "data: [DONE]\n\n" * done


_idle: list[HTTPServer] = []
"""Servers that nobody uses now: to stop one takes half a second, so they are kept to the end of the process."""


def _started() -> HTTPServer:
    server = HTTPServer("127.0.0.1", 0, threaded=True)
    server.start()
    atexit.register(server.stop)
    return server


class ModelServer:
    """See the module. Use it in a `with`."""

    def __init__(self, script: list[Any]) -> None:
        self.script = list(script)
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        replies = [entry for entry in script if not hasattr(entry, "response")]
        self._scripted = ScriptedModelClient(replies)

    def __enter__(self) -> "ModelServer":
        self._http = _idle.pop() if _idle else _started()
        self._http.expect_request(re.compile("")).respond_with_handler(self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.clear()
        _idle.append(self._http)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._http.port}/v1"

    def client(self, **options: Any) -> OpenAIModelClient:
        """A real client of this server."""
        return OpenAIModelClient(**{"model": MODEL, "base_url": self.url, "api_key": KEY, "timeout": 20, **options})

    def streams(self, request: Request) -> bool:
        """Whether this request asked for a stream."""
        return bool(json.loads(request.get_data()).get("stream"))

    def answer(self, entry: Any, request: Request) -> Response:
        """A reply of the script as an answer, streamed where that was asked for."""
        reply = entry if hasattr(entry, "to_openai") and not hasattr(entry, "arguments") else None
        reply = reply or ScriptedModelClient([entry]).complete(None)
        message = {**reply.to_openai(), "refusal": reply.refusal}
        if self.streams(request):
            return Response(sse(pieces(message, reply.finish_reason)), content_type="text/event-stream")
        return Response(json.dumps(completion(message, reply.finish_reason)), content_type="application/json")

    def _handle(self, request: Request) -> Response:
        self.bodies.append(json.loads(request.get_data()))
        self.paths.append(request.path)
        self.headers.append(dict(request.headers))
        entry = self.script[len(self.bodies) - 1]
        if hasattr(entry, "response"):
            return entry.response(self, request)
        return self.answer(self._scripted.complete(None), request)


@contextlib.contextmanager
def bytes_server(data: bytes, *, drips: int = 0, pause: float = 0.05):
    """A server of one connection that reads the request and writes these bytes, `drips` of them one by one: its URL."""
    closing = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(60)  # closing it would not wake who waits for a connection

    def serve() -> None:
        with contextlib.suppress(OSError):
            there, _ = listening.accept()
            with there:
                there.settimeout(60)
                there.recv(65_536)
                for at in range(drips):
                    if closing.wait(pause):
                        return
                    there.sendall(data[at : at + 1])
                there.sendall(data[drips:])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        closing.set()
        listening.close()
        thread.join(10)
