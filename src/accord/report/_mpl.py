"""What figures take from matplotlib, which no other file imports."""

from accord.errors import ExtraMissing

__all__ = ["Axes", "Figure", "FuncFormatter", "MaxNLocator", "style"]


try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator
except ImportError as error:
    raise ExtraMissing(
        "figures are drawn with matplotlib, which is not installed. "
        "To install it: pip install 'accord[report]'"
    ) from error
