"""Reproduce the tables and figures of the paper.

`_targets` names them, `_protocols` turns a cell and a scale into a spec, `_required_runs` finds
and trains the runs of a target, `_measure_targets` and `_figure_numbers` measure their records, and
`_reproduce` does it all and stores a `Result` (`_results`). `_status` lists what is done.
"""

from accord.experiments.paper._figure_numbers import Setting, figure_numbers
from accord.experiments.paper._protocols import SCALES, Cell, build_spec
from accord.experiments.paper._reproduce import Failure, reproduce, reproduce_all
from accord.experiments.paper._required_runs import ReproduceContext
from accord.experiments.paper._results import (
    Result,
    TableRow,
    load_results,
    result_text,
    write_summary,
)
from accord.experiments.paper._status import list_targets, status_of, targets_text
from accord.experiments.paper._targets import Target, all_targets, find_targets

__all__ = [
    "SCALES",
    "Cell",
    "Failure",
    "ReproduceContext",
    "Result",
    "Setting",
    "TableRow",
    "Target",
    "all_targets",
    "build_spec",
    "figure_numbers",
    "find_targets",
    "list_targets",
    "load_results",
    "reproduce",
    "reproduce_all",
    "result_text",
    "status_of",
    "targets_text",
    "write_summary",
]
