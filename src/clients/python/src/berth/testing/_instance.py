"""Instances for tests: one that the environment names, one of a test's own, or one for all processes of a run."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .._sync.control import Control
from ._executable import find_executable

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

# What an instance runs: it names the instance, and ends when nobody holds the other end of its standard input any more, however
# they ended. "$0" is a directory to remove then, with the one that it is in if that is empty.
_COMMAND = """
printf '%s\\n' "$BERTH_BASE_URL" "$BERTH_API_KEY" "$BERTH_ADMIN_TOKEN"
cat >/dev/null
if [ "$0" != - ]; then rm -rf "$0"; rmdir "$(dirname "$0")" 2>/dev/null; fi
exit 0
"""

# How long an instance may take to end, in seconds, before it is terminated.
_PATIENCE = 20.0

# The files of an instance that processes share.
_ALIVE = "alive"
_STATE = "instance.json"


class Instance:
    """A berth that runs for tests. A ``with`` block ends it, if it was started here."""

    def __init__(self, base_url: str, api_key: str, admin_token: str) -> None:
        self.base_url = base_url
        #: A key of the first account.
        self.api_key = api_key
        self.admin_token = admin_token
        self.control = Control(base_url, admin_token)
        self._process: subprocess.Popen[bytes] | None = None
        self._alive: int | None = None

    def stop(self) -> None:
        """Ends it with everything that was made on it, if it was started here and no other process uses it."""
        self.control.close()
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.terminate()
                self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(*options: str) -> Instance:
    """Starts an instance of its own, on a free port and in a temporary directory.

    It ends with ``stop``, and with this process however that ends. It allows webhooks to this machine.

    :param options: those of ``berth serve``, such as ``"--freeze", "2030-01-31T23:00:00Z"``
    :raises FileNotFoundError: if berth's executable is not found
    :raises RuntimeError: if it cannot start
    """
    stdin, alive = os.pipe()
    try:
        instance, process = _launch(stdin, "-", options)
    except BaseException:
        os.close(alive)
        raise
    instance._process, instance._alive = process, alive
    return instance


def of_environment() -> Instance | None:
    """Returns the instance that the variables of ``berth run`` name; None without them."""
    found = [os.environ.get(f"BERTH_{name}") for name in ("BASE_URL", "API_KEY", "ADMIN_TOKEN")]
    base_url, api_key, admin_token = found
    return Instance(base_url, api_key or "", admin_token) if base_url and admin_token else None


def shared(directory: Path) -> Instance:
    """Returns the instance of all processes that name the same directory. The first starts it; it ends after the last.

    :param directory: one of this user's own, which is made and removed
    """
    while True:
        directory.mkdir(mode=0o700, exist_ok=True)
        # An instance that ends removes the directory: then from the beginning.
        try:
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            if os.fstat(lock).st_uid != os.getuid():
                raise PermissionError(f"{directory} belongs to another user.")
            fcntl.flock(lock, fcntl.LOCK_EX)
            for place in directory.iterdir():
                instance = _joined(place)
                if instance is not None:
                    return instance
            try:
                place = Path(tempfile.mkdtemp(dir=directory))
            except FileNotFoundError:
                continue
            return _shared_anew(place)
        finally:
            os.close(lock)


def _joined(place: Path) -> Instance | None:
    """Returns the instance of a directory; None if it has ended."""
    try:
        # Without a reader, which the instance is, this fails.
        alive = os.open(place / _ALIVE, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    instance = Instance(**json.loads((place / _STATE).read_text()))
    instance._alive = alive
    return instance


def _shared_anew(place: Path) -> Instance:
    os.mkfifo(place / _ALIVE, 0o600)
    stdin = os.open(place / _ALIVE, os.O_RDONLY | os.O_NONBLOCK)
    alive = os.open(place / _ALIVE, os.O_WRONLY)
    os.set_blocking(stdin, True)
    try:
        instance, process = _launch(stdin, str(place), ())
    except BaseException:
        os.close(alive)
        shutil.rmtree(place)
        with contextlib.suppress(OSError):
            place.parent.rmdir()
        raise
    state = {"base_url": instance.base_url, "api_key": instance.api_key, "admin_token": instance.admin_token}
    with open(place / _STATE, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        json.dump(state, file)
    instance._alive = alive
    # It may outlive this process, which therefore does not wait for it.
    process.returncode = 0
    return instance


def _launch(stdin: int, directory: str, options: tuple[str, ...]) -> tuple[Instance, subprocess.Popen[bytes]]:
    """Starts an instance that ends with its standard input. Closes the descriptor of this here.

    :raises RuntimeError: if it cannot start, with what it printed
    """
    with tempfile.TemporaryFile() as log:
        try:
            command = [
                find_executable(),
                "run",
                "--allow-local-webhooks",
                *options,
                "--",
                "sh",
                "-c",
                _COMMAND,
                directory,
            ]
            # A session of its own: Ctrl-C of the terminal ends the tests, which end the instance.
            process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        finally:
            os.close(stdin)
        assert process.stdout is not None
        with process.stdout as output:
            lines = [line for _, line in zip(range(3), _lines(output), strict=False)]
        if len(lines) < 3:
            process.wait()
            log.seek(0)
            printed = log.read().decode("utf-8", "replace").strip()
            raise RuntimeError(f"berth did not start (exit code {process.returncode}):\n{printed}")
        return Instance(*lines), process


def _lines(output: IO[bytes]) -> Iterator[str]:
    while line := output.readline():
        yield line.decode().rstrip("\n")
