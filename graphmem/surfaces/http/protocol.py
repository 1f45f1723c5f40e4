"""Connections that do not go on: uvicorn waits as long as it takes, for the head of a request and for who reads."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphmem.surfaces import wire
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.refusals import JSON, KINDS, told

_LATE = 408


class PatientProtocol(H11Protocol):
    """HTTP/1.1 on one connection, which is closed where it does not go on.

    seconds: until the head of a request has to be here. patience: until who asked has to have read what it was sent.
    """

    seconds = Bounds().seconds
    patience = 30.0
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for what is left of a head from its first byte on."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._wait_no_more()
        self._read_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until what was sent is read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Send on."""
        self._read_on()
        super().resume_writing()

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait(self) -> None:
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.conn.their_state is not h11.IDLE:
            self._wait_no_more()
        elif self._late is None:
            self._late = self.loop.call_later(self.seconds, self._give_up)

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        begun, _ = self.conn.trailing_data
        if begun and not self.transport.is_closing():
            self._tell_late()
        self.transport.close()

    def _tell_late(self) -> None:
        body = told(wire.refusal(KINDS[_LATE], f"send the head of a request within {self.seconds:g} seconds"))
        headers = [("content-type", JSON), ("content-length", str(len(body))), ("connection", "close")]
        for event in (
            h11.Response(status_code=_LATE, headers=headers, reason=b"Request Timeout"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
