"""berth.testing, as programs of their own use it: without "berth run"."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from berth import testing

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("BERTH_", "PYTEST_"))}
ENVIRONMENT |= {name: os.environ[name] for name in ("BERTH_EXECUTABLE",) if name in os.environ}


class Run:
    """A directory with a test file, and another one for all temporary files of its run."""

    def __init__(self, directory: Path, code: str) -> None:
        self.directory = directory
        self.temporary = directory / "temporary"
        self.temporary.mkdir()
        (directory / "test_it.py").write_text(textwrap.dedent(code))

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.directory,
            env={**ENVIRONMENT, "TMPDIR": str(self.temporary), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def left(self) -> list[str]:
        """What is left of berth, once an instance that just ended had its time."""
        for _ in range(200):
            found = [path.name for path in self.temporary.iterdir() if "berth" in path.name]
            if not found:
                break
            time.sleep(0.05)
        return found


PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")


def test_the_plugin_loads_nothing_until_a_fixture_is_asked_for(tmp_path: Path) -> None:
    run = Run(tmp_path, "import sys\ndef test(): assert not {'berth', 'httpx', 'attrs'} & sys.modules.keys()")
    code, output = run.end(*PYTEST, PATH="/nowhere", BERTH_EXECUTABLE="")
    assert code == 0, output
    assert run.left() == []


def test_an_instance_is_started_and_leaves_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, "def test(berth): assert berth.servers.create('x').exec('echo hi').stdout == 'hi\\n'")
    code, output = run.end(*PYTEST)
    assert code == 0, output
    assert [path.name for path in run.temporary.iterdir() if "berth" in path.name] == []


def test_all_workers_of_xdist_share_one_instance(tmp_path: Path) -> None:
    run = Run(
        tmp_path,
        """
        import os, pytest
        @pytest.mark.parametrize("n", range(8))
        def test(n, berth, berth_control, worker_id):
            berth.servers.create(str(n))
            with open("seen", "a") as seen:
                seen.write(f"{berth_control.base_url} {worker_id}\\n")
        """,
    )
    code, output = run.end(*PYTEST, "-n", "2")
    assert code == 0, output
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert len({address for address, _ in seen}) == 1
    assert len({worker for _, worker in seen}) == 2
    assert run.left() == []


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_killed_runner_leaves_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    run = Run(
        tmp_path,
        """
        import time
        def test(berth, berth_control):
            berth.servers.create("x").execute("sleep 64")
            with open("address.new", "w") as file:
                file.write(berth_control.base_url)
            import os
            os.rename("address.new", "address")
            time.sleep(60)
        """,
    )
    process = run.start(*PYTEST, *arguments)
    while not (tmp_path / "address").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    address = urlsplit((tmp_path / "address").read_text())
    assert address.hostname and address.port
    with socket.create_connection((address.hostname, address.port)) as connection:
        # The kernel hands a connection to berth when its first byte has arrived.
        connection.sendall(b"GET ")
        process.send_signal(signal.SIGKILL)
        connection.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    process.communicate()
    assert run.left() == []


def test_a_missing_executable_is_named_with_its_remedy(tmp_path: Path) -> None:
    run = Run(tmp_path, "def test(berth): pass")
    code, output = run.end(*PYTEST, PATH="/nowhere", BERTH_EXECUTABLE="")
    assert code != 0
    assert "pip install" in output and "-berth-cli" in output and "BERTH_EXECUTABLE" in output


def test_a_start_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="--no-such-option"):
        testing.start("--no-such-option")


def test_unittest_has_accounts_of_their_own(tmp_path: Path) -> None:
    run = Run(
        tmp_path,
        """
        import unittest
        from berth.testing import BerthMixin

        class Tests(BerthMixin, unittest.TestCase):
            def test_one(self):
                self.berth.servers.create("one")
                self.assertEqual(len(self.berth.servers.list()), 1)
            test_two = test_one
        """,
    )
    code, output = run.end("unittest")
    assert code == 0 and "Ran 2 tests" in output, output
    assert run.left() == []


def test_an_instance_of_its_own_has_options() -> None:
    with testing.start("--freeze", "2030-01-31T23:00:00Z") as instance:
        assert instance.control.clock.read().frozen
        assert instance.control.clock.advance("2h").now.month == 2
