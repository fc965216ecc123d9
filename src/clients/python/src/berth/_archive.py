"""Local directories as archives, and what a push sends of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import attrs

#: Whether to send a file or directory, by its relative path with "/".
Filter = Callable[[str], bool]

# Directories that are not sent, wherever they are: they are made anew, or are the developer's own.
_LEFT_OUT = frozenset({"node_modules", ".git"})

# How many bytes of files one request of a push sends, before they are packed: a request takes 32 MiB.
_PART_BYTES = 24 * 1024 * 1024


@attrs.frozen
class Entry:
    """A file, a directory or a symbolic link below a local directory."""

    #: Relative, with "/".
    path: str
    place: Path
    size: int
    #: Where a link leads; None for others.
    target: str | None

    @property
    def is_file(self) -> bool:
        return self.target is None and not self.place.is_dir()


@attrs.frozen
class Piece:
    """A part of a file: ``size`` bytes from ``offset`` on."""

    entry: Entry
    offset: int
    size: int

    @property
    def is_whole(self) -> bool:
        return self.size == self.entry.size

    @property
    def description(self) -> dict[str, Any]:
        """The piece as a push names it."""
        return {
            "path": self.entry.path,
            "offset": self.offset,
            "more": self.offset + self.size < self.entry.size,
        }


def entries_of(directory: str | os.PathLike[str], wanted: Filter | None) -> list[Entry]:
    """Lists what is below a directory, sorted. ``node_modules``, ``.git``, sockets, pipes and devices are left out.

    :raises NotADirectoryError: if there is no such directory
    """
    root = Path(directory)
    if not root.is_dir():
        raise NotADirectoryError(f"There is no directory {root}.")

    def visit(below: Path, prefix: str) -> Iterator[Entry]:
        for place in sorted(below.iterdir(), key=lambda one: one.name):
            path = prefix + place.name
            if place.name in _LEFT_OUT or (wanted is not None and not wanted(path)):
                continue
            if place.is_symlink():
                yield Entry(path, place, 0, os.readlink(place))
            elif place.is_dir():
                yield Entry(path, place, 0, None)
                yield from visit(place, path + "/")
            elif place.is_file():
                yield Entry(path, place, place.stat().st_size, None)

    return list(visit(root, ""))


def pack(pieces: Iterable[Piece], to: IO[bytes]) -> None:
    """Writes a tar.gz of files, or of parts of them, directories and links."""
    with tarfile.open(fileobj=to, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=6) as archive:
        for piece in pieces:
            entry = piece.entry
            info = archive.gettarinfo(entry.place, entry.path)
            # The owner and the time of this machine mean nothing on a server.
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            info.mode = 0o755 if info.mode & 0o111 or info.isdir() else 0o644
            # Hard links are files of their own there.
            if entry.is_file:
                info.type = tarfile.REGTYPE
                info.linkname = ""
                info.size = piece.size
                with open(entry.place, "rb") as content:
                    content.seek(piece.offset)
                    archive.addfile(info, content)
            else:
                archive.addfile(info)


def packed(pieces: Iterable[Piece]) -> bytes:
    """Returns a tar.gz."""
    to = io.BytesIO()
    pack(pieces, to)
    return to.getvalue()


def whole(entries: Iterable[Entry]) -> list[Piece]:
    """Returns entries as pieces that are whole."""
    return [Piece(entry, 0, entry.size) for entry in entries]


def described(entries: Iterable[Entry]) -> dict[str, list[dict[str, Any]]]:
    """Describes the files and links of a directory for a push."""
    files = []
    links = []
    for entry in entries:
        if entry.target is not None:
            links.append({"path": entry.path, "target": entry.target})
        elif entry.is_file:
            digest = hashlib.sha256()
            with open(entry.place, "rb") as content:
                while chunk := content.read(1024 * 1024):
                    digest.update(chunk)
            executable = os.stat(entry.place).st_mode & 0o111 != 0
            files.append({"path": entry.path, "sha256": digest.hexdigest(), "executable": executable})
    return {"files": files, "links": links}


def parts_of(entries: Iterable[Entry]) -> list[list[Piece]]:
    """Divides entries into parts that fit into a request; a file that is too large for one becomes pieces."""
    parts: list[list[Piece]] = []
    room = 0
    for entry in entries:
        offset = 0
        while True:
            if room == 0 or (offset == 0 and room < entry.size <= _PART_BYTES):
                parts.append([])
                room = _PART_BYTES
            size = min(entry.size - offset, room)
            parts[-1].append(Piece(entry, offset, size))
            offset += size
            room -= size
            if offset == entry.size:
                break
    return parts


def unpack(archive: IO[bytes], directory: str | os.PathLike[str]) -> None:
    """Unpacks a tar.gz into a directory, which is made. Existing files stay, and nothing outside is written.

    :raises tarfile.TarError: if an entry leads out of the directory, also by a link, or the archive is malformed
    :raises FileExistsError: if a file exists
    """
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=archive, mode="r:gz") as tar:
        if not hasattr(tarfile, "data_filter"):
            raise RuntimeError("This Python cannot unpack archives safely: update it to 3.10.12, 3.11.4 or later.")
        members = tar.getmembers()
        for member in members:
            place = root / member.name
            if not member.isdir() and (place.exists() or place.is_symlink()):
                raise FileExistsError(f"{place} exists already.")
        tar.extractall(root, members=members, filter="data")


def form_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """Writes the fields of a request as parts of a form: text as it is, all else as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in fields.items()
        if value is not None
    }
