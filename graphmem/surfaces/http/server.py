"""Serving a memory on a port of loopback until somebody stops it or nobody asks any more."""

import errno
import functools
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from graphmem.config import check_count
from graphmem.core.addresses import is_server
from graphmem.errors import Conflict, InvalidInput, StoreFailed
from graphmem.memory import Memory
from graphmem.surfaces.http import running
from graphmem.surfaces.http.app import create_app
from graphmem.surfaces.http.bounds import Load
from graphmem.surfaces.http.gate import LONGEST_HEAD
from graphmem.surfaces.http.protocol import PatientProtocol
from graphmem.surfaces.http.refusals import ErrorPage
from graphmem.surfaces.http.token import new_token

HOSTS = ("127.0.0.1", "::1", "localhost")
_LAST_PORT = 2**16 - 1
_CONNECTIONS = 256
_PATIENCE = 5  # seconds for what is still being answered at the end


def serve(
    memory: Memory,
    path: str,
    *,
    host: str,
    port: int,
    idle: float | None,
    private: bool,
    ready: Callable[[running.Running], None],
    pages: Sequence[BaseRoute] = (),
    error_page: ErrorPage | None = None,
) -> None:
    """Serve a memory until the process is told to end, or nothing was asked for `idle` seconds.

    path: what it was opened by; of a server the whole address, by which it is opened for other projects.
    host: one of `HOSTS`. port: 0 for any that is free. private: reading needs the token too. ready: told how it is
    reached, as soon as it is. pages, error_page: as in `create_app`.

    Raises Conflict where the memory is served already or the port is taken, StoreFailed where no file can tell of the
    server, InvalidInput for a memory without a file.
    """
    if memory.path == ":memory:":
        raise InvalidInput("db", memory.path, "name a file: one in memory is gone with its server")
    path = path if is_server(path) else memory.path
    with running.only_server(path) as record, listening(host, port) as listener:
        name, free, *_ = listener.getsockname()
        url = f"http://[{name}]:{free}" if ":" in name else f"http://{name}:{free}"
        served = running.Running(memory.path, url, free, new_token(), os.getpid())
        load = Load()
        app = create_app(
            memory,
            port=free,
            token=served.token,
            pages=pages,
            error_page=error_page,
            load=load,
            private=private,
            opened=functools.partial(Memory.open, path, create=False),
        )
        server = Server(app, is_over=lambda: idle is not None and load.idle_for() > idle, load=load)
        with server.stopped_by_signals():
            running.tell(record, served)
            ready(served)
            server.run([listener])


class Server(uvicorn.Server):
    """A server of an application that ends by itself when it is over, and by signals without an exception."""

    def __init__(self, app: ASGIApp, *, is_over: Callable[[], bool] = lambda: False, load: Load | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PatientProtocol,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_CONNECTIONS,
                h11_max_incomplete_event_size=LONGEST_HEAD,
                timeout_graceful_shutdown=_PATIENCE,
            )
        )
        self._is_over = is_over
        self._load = load or Load()

    async def on_tick(self, counter: int) -> bool:
        """Tell, ten times a second, whether to end."""
        ends = await super().on_tick(counter)
        self._load.is_over = ends or self._is_over()
        return self._load.is_over

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Let signals end the server, also before it runs. At its end it raises them again, which does nothing here."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_: object) -> None:
            self.should_exit = True

        before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket to which can be connected from now on. Raises InvalidInput, Conflict, StoreFailed."""
    if host not in HOSTS:
        raise InvalidInput("host", host, f"only this machine is served: give one of {', '.join(HOSTS)}")
    check_count("port", port, high=_LAST_PORT)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without its protocol named, asyncio does not take it for TCP and lets each answer wait 40 ms for the one before.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_CONNECTIONS)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(f"port {port} of {host} is taken: choose another, or 0 for any that is free") from None
        raise StoreFailed(f"port {port} of {host} cannot be used: {error.strerror}; choose another") from error
    return listener
