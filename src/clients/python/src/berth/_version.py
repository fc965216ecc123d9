"""The version of this package, and how it compares with that of berth."""

from __future__ import annotations

import warnings
from importlib import metadata

import httpx

from .errors import BerthVersionWarning


def _installed() -> str:
    try:
        return metadata.version("owner-berth")
    except metadata.PackageNotFoundError:
        return "0.0.0"


#: The version of this package, which is that of the berth that it was made with.
VERSION = _installed()

_warned: set[str] = set()


def compare_version(response: httpx.Response) -> None:
    """Warns once of a berth of another version."""
    version = response.headers.get("x-berth-version")
    if version is None or version == VERSION or version in _warned:
        return
    _warned.add(version)
    warnings.warn(
        f"berth has version {version}, and its client {VERSION}: install the client of the same version.",
        BerthVersionWarning,
        stacklevel=2,
    )
