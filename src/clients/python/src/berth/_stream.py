"""Server-sent events (HTML standard, 9.2), without input or output of its own."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import attrs


@attrs.frozen
class StreamEvent:
    """An event of a stream."""

    #: What to send as ``Last-Event-ID`` to go on after it; None if the stream has no ids.
    id: str | None
    #: Its name; ``message`` if it has none.
    event: str
    data: str


class EventDecoder:
    """Makes events of the bytes of a stream. Comments, which keep the connection alive, and unknown fields are skipped."""

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yields the events that these bytes complete."""
        text = self._rest + self._text.decode(chunk)
        # A "\r" at the end may be the first half of "\r\n".
        held = "\r" if text.endswith("\r") else ""
        lines = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        for line in lines:
            if line == "":
                if self._data:
                    yield StreamEvent(self._id, self._event or "message", "\n".join(self._data))
                self._event = ""
                # The ids of berth's entries belong to one event each: events between them have none.
                self._id = None
                self._data = []
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                self._event = value
            elif field == "data":
                self._data.append(value)
            elif field == "id" and "\0" not in value:
                self._id = value
