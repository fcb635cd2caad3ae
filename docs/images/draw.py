"""Draw the figure of the README, light and dark."""

from pathlib import Path

import accord
from accord.report._figures import save_figure
from accord.report._theme import INKS

FOLDER = Path(__file__).parent


def darken(picture: str) -> str:
    """Return an SVG with the colours for a dark page."""
    for ink in INKS.values():
        picture = picture.replace(ink.light, ink.dark)
    return picture


if __name__ == "__main__":
    save_figure("overfit", accord.open("example://cifar10-sym40"), FOLDER / "accuracy.svg")
    (FOLDER / "accuracy-dark.svg").write_text(darken((FOLDER / "accuracy.svg").read_text()))
