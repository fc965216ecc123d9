"""Writes the parts of the Python client that are not written by hand: python_parts.py DIRECTORY

- src/berth/_sync, of src/berth/_async by unasync
- src/berth/_generated is made to work in Python 3.10, which has no typing.Self, and whose fromisoformat takes no Z
- src/berth/api, a module for each tag of the document, with its operations of src/berth/_generated
"""

import re
import shutil
import sys
from pathlib import Path

import unasync

package = Path(sys.argv[1]) / "src/berth"

# Names that differ otherwise than by Async, await and the methods that unasync knows.
REPLACEMENTS = {
    "AsyncByteStream": "SyncByteStream",
    "AsyncGenerator": "Generator",
    "AsyncIterator": "Iterator",
    "_async": "_sync",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "async_call": "call",
    "async_pause": "pause",
    "asynccontextmanager": "contextmanager",
    "handle_async_request": "handle_request",
    "set_async_httpx_client": "set_httpx_client",
}


def write_sync() -> None:
    sources = sorted((package / "_async").glob("*.py"))
    texts = [source.read_text() for source in sources]
    own = {name for text in texts for name in re.findall(r"\bAsync[A-Z]\w*", text)} - REPLACEMENTS.keys()
    target = package / "_sync"
    shutil.rmtree(target, ignore_errors=True)
    rule = unasync.Rule(
        fromdir=f"{package}/_async/",
        todir=f"{target}/",
        additional_replacements={**{name: name.removeprefix("Async") for name in own}, **REPLACEMENTS},
    )
    unasync.unasync_files([str(source) for source in sources], [rule])
    # A callback of the sync half is an ordinary function.
    for source in target.glob("*.py"):
        text = source.read_text()
        source.write_text(re.sub(r"Awaitable\[[^\]]*\] \| ", "", text).replace("Awaitable, ", ""))
    (target / "__init__.py").write_text('"""The sync half of the client, made of ``berth._async``."""\n')


def support_python_3_10() -> None:
    client = package / "_generated/client.py"
    text = client.read_text()
    self_of_typing = "from typing import Any, Self\n"
    assert self_of_typing in text
    checked = "from typing import TYPE_CHECKING, Any\n\nif TYPE_CHECKING:\n    from typing_extensions import Self\n"
    client.write_text("from __future__ import annotations\n\n" + text.replace(self_of_typing, checked))
    for source in (package / "_generated").rglob("*.py"):
        text = source.read_text()
        if "datetime.datetime.fromisoformat(" not in text:
            continue
        head = "from __future__ import annotations\n"
        assert text.startswith(head), source
        depth = "." * (1 + len(source.relative_to(package).parts) - 1)
        text = text.replace(head, f"{head}\nfrom {depth}_models import time_of\n", 1)
        source.write_text(text.replace("datetime.datetime.fromisoformat(", "time_of("))


def write_api() -> None:
    target = package / "api"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    generated = package / "_generated"
    modules = []
    for tag in sorted((generated / "api").iterdir()):
        operations = sorted(file.stem for file in tag.glob("*.py") if file.stem != "__init__")
        if not operations:
            continue
        modules.append(tag.name)
        lines = [f"from .._generated.api.{tag.name} import {name} as {name}" for name in operations]
        (target / f"{tag.name}.py").write_text(
            "\n".join([f'"""Operations of {tag.name}, generated."""', "", *lines, ""])
        )
    for name in ("models", "types"):
        (target / f"{name}.py").write_text(
            f'"""Generated {name}."""\n\nfrom .._generated.{name} import *  # noqa: F403\n'
        )
    (target / "__init__.py").write_text(
        '"""Every operation of berth, generated from its OpenAPI document: ``processes_list.sync(id, client=berth.api)``.\n\n'
        f'There is a module for each kind: {", ".join(modules)}; and ``models`` and ``types``.\n"""\n'
    )


write_sync()
support_python_3_10()
write_api()
