import itertools

import erring_records
import pytest
from record_fixtures import hard, make_hard, make_record, record  # noqa: F401 -- fixtures


@pytest.fixture(scope="session")
def setting():
    return erring_records.make_setting()


def shown_texts(figure):
    """Return all texts but those of ticks beyond the ends of an axis, which are not drawn."""
    axes = [one for one in figure.axes if one.axison]
    every = [axis for one in axes for axis in (one.xaxis, one.yaxis)]
    return [
        *figure.texts,
        *(text for one in axes for text in (*one.texts, one._left_title)),
        *(tick.label1 for axis in every for tick in axis._update_ticks()),
        *(axis.label for axis in every),
    ]


@pytest.fixture(scope="session")
def check_texts():
    """Check that every text lies on the picture, and none on another."""

    def check(figure):
        figure.draw_without_rendering()
        texts = [one for one in shown_texts(figure) if one.get_visible() and one.get_text()]
        boxes = {one: one.get_window_extent().padded(-1.5) for one in texts}
        page = figure.bbox
        for text, box in boxes.items():
            corners = page.x0 <= box.x0 and box.x1 <= page.x1, page.y0 <= box.y0, box.y1 <= page.y1
            assert all(corners), f"{text.get_text()!r} leaves the picture"
        for (one, first), (other, second) in itertools.combinations(boxes.items(), 2):
            assert not first.overlaps(second), f"{one.get_text()!r} on {other.get_text()!r}"

    return check
