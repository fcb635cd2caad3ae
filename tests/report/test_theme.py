"""Colours are legible on their page, and distinguishable."""

import pytest

from accord.report._theme import INKS


def luminance(colour):
    """As the Web Content Accessibility Guidelines define it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("name", sorted(set(INKS) - {"paper", "grid"}))
def test_every_ink_has_enough_contrast_for_text(name, page):
    ends = sorted(luminance(getattr(INKS[one], page)) for one in (name, "paper"))
    assert (ends[1] + 0.05) / (ends[0] + 0.05) >= 4.5


def test_no_two_inks_are_equal():
    assert len({ink.light for ink in INKS.values()}) == len(INKS)
