"""Colours, line styles and fonts of the report."""

from typing import Any, Final, NamedTuple


class Ink(NamedTuple):
    """Colour for light and dark pages."""

    light: str
    dark: str


# Blue and vermilion are distinguishable with every common colour blindness, and line styles differ
# as well. Each colour has a contrast of at least 4.5 to its page, so that labels can use it; only
# `grid` is faint. No two light colours are equal: figures replace them by value.
INKS: Final = {
    "text": Ink("#20262e", "#e6e9ee"),
    "quiet": Ink("#5b6470", "#a3adba"),
    "grid": Ink("#e2e6eb", "#333b46"),
    "paper": Ink("#ffffff", "#14181d"),
    "max-agreement": Ink("#0a62a8", "#6db7ff"),
    "majority": Ink("#b84a0a", "#ff9b5e"),
    "single": Ink("#6a6f77", "#aab1bb"),
    "probability-average": Ink("#98338a", "#e79ddb"),
    "soft-agreement": Ink("#13703a", "#70d094"),
    "oracle-best-epoch": Ink("#4a4f57", "#c2c8d0"),
    "agreement": Ink("#51459f", "#b0a5f5"),
    "right": Ink("#0a63a9", "#6db8ff"),
    "wrong": Ink("#b94b0b", "#ff9c5f"),
}


def ink(name: str) -> str:
    return INKS[name].light


# DejaVu Sans comes with matplotlib, so that text has the same size on every machine. Browsers use
# another font, which is rarely wider.
STYLE: Final[dict[str, Any]] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": ink("text"),
    "text.parse_math": False,
    "axes.edgecolor": ink("quiet"),
    "axes.labelcolor": ink("quiet"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.titlesize": 9.5,
    "axes.titlepad": 8,
    "axes.titlelocation": "left",
    "axes.titlecolor": ink("quiet"),
    "grid.color": ink("grid"),
    "grid.linewidth": 0.8,
    "xtick.color": ink("quiet"),
    "ytick.color": ink("quiet"),
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
}
LINES: Final[dict[str, dict[str, Any]]] = {
    "max-agreement": {"linestyle": "-", "linewidth": 2.4, "zorder": 5},
    "majority": {"linestyle": (0, (5, 1.6)), "linewidth": 1.7, "zorder": 4},
    "single": {"linestyle": (0, (1, 1.4)), "linewidth": 1.7},
    "probability-average": {"linestyle": (0, (7, 1.6, 1, 1.6)), "linewidth": 1.4},
    "soft-agreement": {"linestyle": (0, (10, 2)), "linewidth": 1.4},
    "agreement": {"linestyle": "-", "linewidth": 2.0},
    "right": {"linestyle": "-", "linewidth": 2.0},
    "wrong": {"linestyle": (0, (4, 1.6)), "linewidth": 2.0},
}
