"""Every table and figure of the paper by name: how it is trained, measured and set beside ours."""

from accord.experiments.paper._protocols import SCALES, Cell, build_spec
from accord.experiments.paper._reproduce import Failure, reproduce, reproduce_all
from accord.experiments.paper._required_runs import status_of
from accord.experiments.paper._results import Result, Row, load_results, result_text, write_summary
from accord.experiments.paper._targets import Target, all_targets, find_targets

__all__ = [
    "SCALES",
    "Cell",
    "Failure",
    "Result",
    "Row",
    "Target",
    "all_targets",
    "build_spec",
    "find_targets",
    "load_results",
    "reproduce",
    "reproduce_all",
    "result_text",
    "status_of",
    "write_summary",
]
