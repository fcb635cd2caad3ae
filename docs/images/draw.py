"""Draw the picture of README, on white and on dark."""

from pathlib import Path

import accord
from accord.report._figures import save_figure
from accord.report._theme import INKS

FOLDER = Path(__file__).parent


def darken(picture: str) -> str:
    """Return an SVG in the colours of a dark page."""
    for ink in INKS.values():
        picture = picture.replace(ink.light, ink.dark)
    return picture


if __name__ == "__main__":
    save_figure("overfit", accord.open("example://cifar10-sym40"), FOLDER / "accuracy.svg")
    (FOLDER / "accuracy-dark.svg").write_text(darken((FOLDER / "accuracy.svg").read_text()))
