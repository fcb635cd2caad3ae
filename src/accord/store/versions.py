"""When a record was made, and with which software."""

import contextlib
import datetime as dt
import platform
from importlib import metadata

from accord._version import __version__


def made_with() -> dict[str, str]:
    """Return the versions of everything that shapes a record."""
    packages = ("numpy", "zarr", "numcodecs", "torch")
    found = {"accord": __version__, "python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def now() -> str:
    """Return the time of day as it is written into records."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
