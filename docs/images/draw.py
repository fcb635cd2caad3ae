"""Draw the figure of the README, light and dark."""

from pathlib import Path

import accord
from accord.analysis import summarize
from accord.report import record_figure, save_figure
from accord.report._theme import INKS

FOLDER = Path(__file__).parent


def darken(picture: str) -> str:
    """Return an SVG with the colours for a dark page."""
    for ink in INKS.values():
        picture = picture.replace(ink.light, ink.dark)
    return picture


if __name__ == "__main__":
    summary = summarize(accord.open("example://cifar10-sym40").reader)
    save_figure(record_figure("overfit", summary), FOLDER / "accuracy.svg")
    (FOLDER / "accuracy-dark.svg").write_text(darken((FOLDER / "accuracy.svg").read_text()))
