"""Measure how deep the calls of Accord nest."""

import sys
from pathlib import Path

import accord

ROOT = str(Path(accord.__file__).parent)


def deepest_chain(call):
    """Return the longest chain of Accord's own frames while `call` runs, as file:function."""
    chain, deepest = [], []

    def watch(frame, event, _):
        if not frame.f_code.co_filename.startswith(ROOT):
            return
        if event == "call":
            chain.append(frame.f_code)
            if len(chain) > len(deepest):
                deepest[:] = chain
        elif event == "return" and chain:
            chain.pop()

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [f"{code.co_filename[len(ROOT) + 1 :]}:{code.co_qualname}" for code in deepest]
