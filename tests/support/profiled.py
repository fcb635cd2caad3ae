"""What a command does: the stored rows it opens, and how deep calls within Accord nest."""

import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import accord
from accord.store._storage import Folder

OWN = str(Path(accord.__file__).parent)


@contextmanager
def rows_opened(monkeypatch):
    """Yield a Counter of the row objects that are read, by their key in the record."""
    opened, get = Counter(), Folder.get

    def count(self, key):
        if "/labels/c" in key or "/probabilities/c" in key:
            opened[key] += 1
        return get(self, key)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "get", count)
        yield opened


def deepest_chain(call):
    """Return the frames of `accord` on the stack where it is deepest, outermost first."""
    depth, deepest, chain = 0, 0, []

    def trace(frame, event, _):
        nonlocal depth, deepest, chain
        if not frame.f_code.co_filename.startswith(OWN):
            return
        if event == "call":
            depth += 1
            if depth > deepest:
                deepest, chain = depth, _own_frames(frame)
        elif event == "return":
            depth -= 1

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(before)
    return chain


def _own_frames(frame):
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(OWN):
            place = Path(frame.f_code.co_filename).stem
            found.append(f"{place}.{frame.f_code.co_name}")
        frame = frame.f_back
    return found[::-1]
