"""Figure 1 shows each prediction as a stretch of its class's colour."""

from itertools import pairwise

import pytest
from matplotlib.colors import to_hex

from accord.report._drawing import styled
from accord.report._paper_figures import illustration_figure
from accord.report._theme import ink

PANEL = {
    "name": "mine",
    "sample": 7,
    "rescued": 1804,
    "truth": 2,
    "class_names": {
        "0": "ant",
        "1": "bee",
        "2": "cat",
        "3": "dog",
        "4": "elk",
        "5": "an emperor penguin",
    },
    "progress": [0.5, 1.0, 1.5, 2.0],
    "numbers": [4, 5, 6],
    "predicted": [[2, 2, 0, 1], [2, 3, 3, 1], [5, 4, 4, 5]],
    "majority": [2, 2, 0, 1],
    "max_agreement": [2, 2, 2, 2],
    "picture": None,
}


def draw(**changes):
    with styled("test"):
        return illustration_figure(PANEL | changes)


def stretches(axes):
    """Return (middle, start, end, colour) of every box."""
    found = []
    for boxes in axes.collections:
        for path, colour in zip(boxes.get_paths(), [boxes.get_facecolor()[0]] * 99, strict=False):
            x, y = path.vertices[:-1, 0], path.vertices[:-1, 1]
            found.append((float(y.mean()), float(x.min()), float(x.max()), to_hex(colour)))
    return sorted(found)


def test_every_epoch_of_every_strip_has_the_colour_of_its_class():
    (axes,) = draw().axes
    rows = sorted({middle for middle, *_ in stretches(axes)})
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        *("network 4", "network 5", "network 6", "majority", "max-agreement")
    ]
    assert list(axes.get_yticks()) == pytest.approx(rows)
    right, wrong, most, next_, rest = (
        ink(one) for one in ("right", "wrong", "soft-agreement", "probability-average", "grid")
    )
    # Of the others, 3, 4 and 5 have two votes each: the smaller ones get a colour.
    inks = {2: right, 1: wrong, 3: most, 4: next_, 5: rest, 0: rest}
    said = [*PANEL["predicted"], PANEL["majority"], PANEL["max_agreement"]]
    for row, classes in zip(rows, said, strict=True):
        for epoch, label in enumerate(classes):
            (colour,) = (
                colour
                for middle, start, end, colour in stretches(axes)
                if middle == row and start < 0.25 + epoch / 2 < end
            )
            assert colour == inks[label]


def test_equal_neighbours_are_one_stretch():
    (axes,) = draw().axes
    bottom = max(middle for middle, *_ in stretches(axes))
    assert [one[1:] for one in stretches(axes) if one[0] == bottom] == [(0.0, 2.0, ink("right"))]


def test_networks_stand_above_the_votes_and_apart_from_them():
    (axes,) = draw().axes
    low, high = axes.get_ylim()
    assert low > high  # downwards
    rows = axes.get_yticks()
    steps = [after - before for before, after in pairwise(rows)]
    assert steps[2] > steps[0] == steps[1] == steps[3]


def test_last_classes_and_colours_are_named():
    (figure, texts) = (found := draw()), [one.get_text() for one in found.axes[0].texts]
    assert texts[:5] == ["✗ bee", "✗ bee", "✗ an emperor…", "✗ bee", "✓ cat"]
    legend = [text for text in texts[5:] if text != "■"]
    assert legend == ["cat", "bee", "dog", "elk", "other classes"]
    name, chosen = (one.get_text() for one in figure.texts)
    assert name == "mine"
    assert chosen == "sample 7, true class cat: the middle one of 1,804 that max agreement rescues"
    squares = [one.get_color() for one in figure.axes[0].texts if one.get_text() == "■"]
    assert squares == [
        ink(one) for one in ("right", "wrong", "soft-agreement", "probability-average", "grid")
    ]


def test_faint_colours_are_not_written_with():
    (axes,) = draw().axes
    shades = {one.get_text(): one.get_color() for one in axes.texts}
    assert shades["✗ an emperor…"] == shades["other classes"] == ink("quiet")
    assert shades["✓ cat"] == ink("right")


def test_only_max_agreement_is_bold():
    (axes,) = draw().axes
    weights = [one.get_fontweight() for one in axes.texts[:5]]
    assert weights == ["normal"] * 4 + ["bold"]


def test_few_classes_need_no_others():
    (axes,) = draw(predicted=[[2, 2, 2, 1]] * 3, majority=[2, 2, 2, 1]).axes
    assert [one.get_text() for one in axes.texts[5:] if one.get_text() != "■"] == ["cat", "bee"]


def test_a_picture_stands_beside_the_strips_and_leaves_them_their_size():
    picture = [[[255, 0, 0], [0, 255, 0]]]
    without, beside = draw(), draw(picture=picture)
    strips, shown = beside.axes
    assert shown.images[0].get_array().tolist() == picture
    assert shown.get_position().x1 < strips.get_position().x0
    top = shown.get_position().y1
    assert top == pytest.approx(strips.get_position().y1)
    widths = [f.axes[0].get_position().width * f.get_figwidth() for f in (without, beside)]
    assert widths[0] == pytest.approx(widths[1], rel=0.02)


@pytest.mark.parametrize("picture", [None, [[[9, 9, 9]]]])
@pytest.mark.parametrize("name", ["mine", "a setting of many words " * 9])
def test_no_text_is_cut_off_or_covered(check_texts, picture, name):
    check_texts(draw(picture=picture, name=name))
