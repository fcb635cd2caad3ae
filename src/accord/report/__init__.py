"""Reports on records.

Nothing here reads a record: each function takes the dataclasses that `accord.analysis` returns.
`html` needs jinja2 and figures need matplotlib, so names are loaded when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.report._drawing import Drawing, save_figure, svg_of
    from accord.report._figures import record_figure
    from accord.report._paper_figures import paper_figure
    from accord.report._theory_figures import theory_figure, toy_figure
    from accord.report.html import render, write_report

__all__ = [
    "Drawing",
    "paper_figure",
    "record_figure",
    "render",
    "save_figure",
    "svg_of",
    "theory_figure",
    "toy_figure",
    "write_report",
]

_MODULES = {
    "Drawing": "_drawing",
    "paper_figure": "_paper_figures",
    "record_figure": "_figures",
    "render": "html",
    "save_figure": "_drawing",
    "svg_of": "_drawing",
    "theory_figure": "_theory_figures",
    "toy_figure": "_theory_figures",
    "write_report": "html",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'accord.report' has no attribute {name!r}")
    return getattr(importlib.import_module(f"accord.report.{_MODULES[name]}"), name)
