"""The paper's accuracies stand beside ours, both as marks and in words."""

import xml.etree.ElementTree as ET

import pytest

from accord.errors import ChoiceError
from accord.report.looks import ink
from accord.report.paper.comparison import (
    TITLE,
    ComparedRow,
    Found,
    _drawn,
    compare_with_paper,
    draw_comparison,
)

ROWS = [
    ComparedRow("CIFAR-10, sym 40", "majority", Found(0.785, 0.007), Found(0.769)),
    ComparedRow("CIFAR-10, sym 40", "max-agreement", Found(0.9, 0.001), Found(0.91, 0.002)),
    ComparedRow("CIFAR-10, sym 60", "npc", Found(0.5), None),
    ComparedRow("CIFAR-10, sym 60", "single", None, Found(0.4)),
]


def figure_of(rows):
    with _drawn(rows) as figure:
        return figure


def marks(axes):
    """Return (marker, accuracy, height) of every mark."""
    lines = (line for line in axes.lines if line.get_marker() in {"D", "o"})
    return [
        (one.get_marker(), float(one.get_xdata()[0]), float(one.get_ydata()[0])) for one in lines
    ]


def test_every_accuracy_has_a_mark_on_the_row_of_its_method():
    (axes,) = figure_of(ROWS).axes
    heights = {one.get_text(): one.xy[1] for one in axes.texts}
    wanted = [
        (marker, found.accuracy, heights[row.method])
        for row in ROWS
        for marker, found in (("D", row.paper), ("o", row.ours))
        if found
    ]
    assert marks(axes) == wanted
    order = [heights[text] for text in ("CIFAR-10, sym 40", "majority", "max-agreement")]
    assert order == sorted(order)
    assert axes.get_ylim()[0] > axes.get_ylim()[1] == 0
    assert heights["CIFAR-10, sym 60"] > order[-1]


def test_every_accuracy_is_written_in_its_column():
    (axes,) = figure_of(ROWS).axes
    places = [(one.xy[1], one.xyann[0], one.get_text()) for one in axes.texts if one.xy[0] == 1]
    heads = {text: x for y, x, text in places if y < 0}
    assert list(heads) == ["paper", "ours"]
    rows = [text for y, x, text in places if y > 0]
    assert rows == ["78.5 ± 0.7", "76.9", "90.0 ± 0.1", "91.0 ± 0.2", "50.0", "–", "–", "40.0"]
    assert [x for y, x, _ in places if y > 0] == [heads["paper"], heads["ours"]] * 4


def test_standard_errors_become_bars():
    (axes,) = figure_of(ROWS[:1]).axes
    spans = [bar.get_segments()[0][:, 0] for bar in axes.collections]
    assert list(spans[0]) == pytest.approx([0.778, 0.792])


def test_a_rule_has_its_colour_and_another_method_that_of_text():
    (axes,) = figure_of(ROWS).axes
    colours = {one.get_text(): one.get_color() for one in axes.texts}
    assert colours["majority"] == colours["76.9"] == ink("majority")
    assert colours["npc"] == colours["50.0"] == ink("text")
    assert colours["–"] == ink("quiet")


def test_a_setting_is_named_once():
    texts = "\n".join(ET.fromstring(draw_comparison(ROWS)).itertext())
    assert texts.count("CIFAR-10, sym 40") == 1


@pytest.mark.parametrize("copies", [1, 8])
def test_no_text_is_cut_off_or_covered(check_texts, copies):
    check_texts(figure_of(ROWS * copies))


def test_the_drawing_has_no_ground_and_the_file_has(tmp_path):
    assert "fill: #ffffff" in draw_comparison(ROWS)  # the diamonds' own
    compare_with_paper(ROWS, tmp_path / "compared.svg")
    text = (tmp_path / "compared.svg").read_text()
    assert ET.fromstring(text.encode()).get("aria-label") == TITLE
    assert text.count("fill: #ffffff") == draw_comparison(ROWS).count("fill: #ffffff") + 1
    compare_with_paper(ROWS, tmp_path / "compared.png")
    assert (tmp_path / "compared.png").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ChoiceError, match=r"written as \.svg or \.png; got '\.gif'"):
        compare_with_paper(ROWS, tmp_path / "compared.gif")


@pytest.mark.parametrize("rows", [[], [ComparedRow("a", "single", None, None)]])
def test_nothing_to_compare_is_refused(rows):
    with pytest.raises(ChoiceError, match=rf"at least one accuracy; got {len(rows)} rows"):
        draw_comparison(rows)


@pytest.mark.parametrize("found", [Found(90.0), Found(-0.1), Found(0.9, 1.5), Found(float("nan"))])
def test_percentages_are_refused(found):
    with pytest.raises(ChoiceError, match=r"a, single: .* must lie in 0\.\.1; got .* in percent\?"):
        draw_comparison([ComparedRow("a", "single", Found(0.9), found)])
