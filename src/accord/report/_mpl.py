"""Import of matplotlib."""

from accord.errors import missing_extra

__all__ = [
    "Axes",
    "Figure",
    "FuncFormatter",
    "MaxNLocator",
    "rcParams",
    "rcParamsDefault",
    "rc_context",
]


try:
    from matplotlib import rc_context, rcParams, rcParamsDefault
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator
except ImportError as error:
    raise missing_extra("drawing figures", "matplotlib", extra="report", cause=error) from error
