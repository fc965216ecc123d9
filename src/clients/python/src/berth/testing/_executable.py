"""Finds berth's executable."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path

_PACKAGE = "owner-berth-cli"


def find_executable() -> str:
    """Returns the path of berth's executable: that of ``BERTH_EXECUTABLE``, of its package, or of PATH.

    :raises FileNotFoundError: if there is none
    """
    given = os.environ.get("BERTH_EXECUTABLE")
    if given:
        if not os.access(given, os.X_OK):
            raise FileNotFoundError(f"BERTH_EXECUTABLE is {given}, which is not an executable file.")
        return given
    found = _packaged() or shutil.which("berth")
    if found is None:
        raise FileNotFoundError(
            f"berth is not installed. Install its executable by: pip install {_PACKAGE}. Or set BERTH_EXECUTABLE to its path."
        )
    return found


def _packaged() -> str | None:
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    # Its scripts are beside those of this environment, which need not be in PATH.
    for file in files:
        place = Path(str(file.locate()))
        if file.name == "berth" and os.access(place, os.X_OK) and place.is_file():
            return str(place)
    return None
