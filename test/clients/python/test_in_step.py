"""The layer that is written by hand has what the API has."""

import json
import re
from pathlib import Path

import attrs
import berth as package
import pytest
from berth import Berth, Server, _models, errors
from berth._generated import models as generated
from berth.testing import Account, Control

TABLE = json.loads((Path(__file__).parent / "operations.json").read_text())

NAMES = {
    "BuildFields": "Build",
    "CreatedApiKey": "CreatedApiKey",
    "ExecutionFields": "Execution",
    "ProjectFields": "Project",
    "ServerFields": "Server",
    "TaskFields": "Task",
    "Template": "ProjectTemplate",
}
# Made by the client: of a response's text and its base64, and of parts of a response.
OWN = {"ExecResult", "Output", "PushResult", "RefusedConnection", "Change"}


def kinds() -> list[type]:
    found = [one for one in vars(_models).values() if isinstance(one, type) and attrs.has(one)]
    return [one for one in found if one.__module__ == _models.__name__ and one.__name__ not in OWN]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_every_field_of_the_api_is_here(kind: type) -> None:
    if kind is package.TaskEvent:
        # The API has a schema for each type of entry.
        of_api = [
            one for one in vars(generated).values() if isinstance(one, type) and {"seq", "at", "type_"} <= names(one)
        ]
        assert len(of_api) > 5
    else:
        of_api = [getattr(generated, NAMES.get(kind.__name__, kind.__name__))]
    assert names(kind) >= {name.rstrip("_") for one in of_api for name in names(one)} - {"additional_properties"}


def names(kind: type) -> set[str]:
    return {field.name for field in attrs.fields(kind)}


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def test_every_method_of_the_table_is_here(
    berth: Berth, server: Server, berth_control: Control, berth_account: Account
) -> None:
    handles = {"project": package.Project, "task": package.Task, "build": package.Build, "execution": package.Execution}
    roots: dict[str, object] = {"berth": berth, "server": server, "testing": berth_control, **handles}
    # What a call of the part before has.
    called = {"testing.account.": berth_account, "testing.inbox.": berth_control.inbox("any")}
    missing = []
    for path in [path for paths in TABLE["methods"].values() for path in paths]:
        owner, *names = path.split(".")
        found = roots[owner]
        for prefix, value in called.items():
            if path.startswith(prefix):
                found, names = value, names[1:]
        for name in names:
            found = getattr(found, snake(name), None)
        if not callable(found):
            missing.append(path)
    assert missing == []


@pytest.mark.parametrize(("code", "name"), TABLE["errors"].items())
def test_every_code_has_its_class(code: str, name: str) -> None:
    assert errors._CLASSES[code].__name__ == name


def test_the_version_is_that_of_the_package() -> None:
    assert package.__version__ != "0.0.0"
