"""Import of matplotlib."""

from accord.errors import missing_extra

__all__ = ["Axes", "Figure", "FuncFormatter", "MaxNLocator", "style"]


try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator
except ImportError as error:
    raise missing_extra("drawing figures", "matplotlib", extra="report", cause=error) from error
