"""Time that is up when it is up: a connection whose every read and write ends at one moment, however slow the server.

Read `Until` first. An HTTP client's timeout is for each read, so a server that sends one byte now and then can hold it
for ever, in the headers as well as in the body. Here the socket itself knows the moment. Finding the address of a name
is the system's affair and not bounded. This file is imported where a live client is made, never before.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from labkit.errors import ModelError


class Until(threading.local):
    """The moment when the time of the request under way is up. Each thread has its own, as it has its own request."""

    at: float | None = None

    @contextmanager
    def held(self, at: float) -> Iterator[None]:
        """Hold to this moment (of `time.monotonic`) inside the block."""
        self.at = at
        try:
            yield
        finally:
            self.at = None

    def left(self, timeout: float | None, late: type[Exception]) -> float | None:
        """The seconds left, or `timeout` if that is less; raises `late` when there are none."""
        if self.at is None:
            return timeout
        left = self.at - time.monotonic()
        if left <= 0:
            raise late("the time is up")
        return left if timeout is None else min(left, timeout)


class _Stream(httpcore2.NetworkStream):
    """A socket that looks at the clock before each read and write."""

    def __init__(self, inner: httpcore2.NetworkStream, until: Until) -> None:
        self._inner = inner
        self._until = until
        self.close = inner.close  # type: ignore[method-assign]
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._until.left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # subtle: in pieces, since the socket below starts its timeout anew for each part that a slow reader took
        for start in range(0, len(buffer), 65_536):
            piece = buffer[start : start + 65_536]
            self._inner.write(piece, self._until.left(timeout, httpcore2.WriteTimeout))

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = self._until.left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._until)


class _Backend(httpcore2.SyncBackend):
    """Makes such sockets."""

    def __init__(self, until: Until) -> None:
        self._until = until

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._until.left(timeout, httpcore2.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._until)


class _Body(httpx2.SyncByteStream):
    """The bytes of an answer as they come."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class Transport(httpx2.BaseTransport):
    """HTTP over such sockets, by a proxy where the environment names one; never to this machine itself."""

    def __init__(self, base_url: str, until: Until) -> None:
        url = httpx2.URL(base_url)
        proxy = _proxy(url)
        make: Callable[..., httpcore2.ConnectionPool] = httpcore2.ConnectionPool
        more: dict[str, Any] = {}
        if proxy:
            make = httpcore2.HTTPProxy
            more = {"proxy_url": _url(proxy.url), "proxy_auth": proxy.raw_auth, "proxy_headers": proxy.headers.raw}
        self._pool = make(ssl_context=httpx2.create_ssl_context(), network_backend=_Backend(until), **more)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self._pool.handle_request(
            httpcore2.Request(
                method=request.method,
                url=_url(request.url),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    def close(self) -> None:
        self._pool.close()


def _url(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


def _proxy(url: httpx2.URL) -> httpx2.Proxy | None:
    """The proxy between us and an address, as the environment says. ModelError for a kind that is not spoken here."""
    if _here(url.host) or proxy_bypass(url.host):
        return None
    known = getproxies()
    address = known.get(url.scheme) or known.get("all")
    if not address:
        return None
    if not address.startswith(("http://", "https://")):
        raise ModelError(
            f"the way to {url.host} leads through a proxy that is no HTTP proxy, and the lab speaks to no other. "
            "Put the host into NO_PROXY, or set HTTPS_PROXY to an HTTP proxy."
        )
    return httpx2.Proxy(address)


def _here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
