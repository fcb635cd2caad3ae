"""The figures of the paper, drawn from numbers."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex

from accord.errors import ChoiceError
from accord.experiments.paper._figure_numbers import NEEDS, Setting, figure_numbers
from accord.report._drawing import save_figure, styled, svg_of
from accord.report._paper_figures import FIGURES, illustration_figure, paper_figure
from accord.report._theme import ink

LABELS = {
    1: ["mine", "sample ", "network 0", "network 2", "majority", "max-agreement", "✗", "✓"],
    2: ["mine", "networks that give the same wrong class", "share of the wrong predictions"],
    3: ["mine", "epochs of training", "single, clean subset ", "majority, clean subset "],
    4: ["mine", "final margin", "right: ", "wrong: "],
    5: ["mine", "single ", "majority ", "max-agreement ", "single, clean subset "],
    6: ["mine", "networks", "majority ", "max-agreement "],
    7: ["mine", "equally spaced epochs", "majority ", "max-agreement "],
    8: ["mine", "training samples per class", "turned right ", "turned wrong "],
    10: ["mine", "epochs of training", "single ", "majority ", "max-agreement "],
}
SHAPES = [(3, 2, 300, 2), (15, 3, 60, 3), (3, 100, 300, 100)]
PANELS = {1: 1, 2: 4, 3: 3, 4: 4, 5: 3, 6: 3, 7: 3, 8: 3, 10: 3}  # more than stand in a row


def drawn(numbers):
    with styled("test"):
        return FIGURES[numbers["figure"]](numbers["panels"])


@pytest.fixture(scope="module")
def drawings(setting):
    return {number: svg_of(paper_figure(figure_numbers(number, setting))) for number in NEEDS}


def test_every_figure_that_can_be_measured_can_be_drawn():
    assert set(FIGURES) == set(NEEDS) == set(LABELS)


@pytest.mark.parametrize("number", NEEDS)
def test_a_figure_is_xml_and_shows_its_labels(drawings, number):
    root = ET.fromstring(drawings[number])
    assert (root.get("role"), root.get("aria-label")) == ("img", NEEDS[number].title)
    texts = "\n".join(root.itertext())
    assert [label for label in LABELS[number] if label not in texts] == []


@pytest.mark.parametrize("number", NEEDS)
def test_numbers_from_a_file_give_the_same_drawing(drawings, setting, number):
    stored = json.dumps(figure_numbers(number, setting))
    assert svg_of(paper_figure(json.loads(stored))) == drawings[number]


def test_identifiers_of_two_figures_never_clash(drawings):
    found = [re.findall(r' id="([^"]+)"', drawing) for drawing in drawings.values()]
    everything = [one for some in found for one in some]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize("number", NEEDS)
def test_a_drawing_has_no_ground_of_its_own(drawings, number):
    assert "fill: #ffffff" not in drawings[number]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("number", NEEDS)
def test_no_text_is_cut_off_or_covered(make_record, check_texts, number, shape):
    _, epochs, samples, classes = shape
    names = tuple(f"a rather long name, {label}" for label in range(classes))
    noisy = make_record(*shape, class_names=names, wrong=0.7)
    clean = make_record(2, epochs, samples, classes, wrong=0.1)
    settings = [
        Setting(f"a data set of some kind, {place}0 % symmetric noise", noisy, clean, size)
        for place in range(PANELS[number])
        for size in ((10, 500, 5000) if number == 8 else (None,))
    ]
    check_texts(drawn(figure_numbers(number, settings)))


@pytest.mark.parametrize("number", sorted(set(NEEDS) - {1}))
def test_a_figure_is_drawn_where_nothing_is_wrong(make_record, number):
    perfect = make_record(3, 4, 20, 3, wrong=0)
    numbers = figure_numbers(number, Setting("perfect", perfect, perfect, samples_per_class=5))
    svg_of(paper_figure(numbers))


@pytest.mark.parametrize(("panels", "expected"), [(1, (1, 1)), (2, (2, 1)), (3, (2, 2))])
def test_panels_stand_in_rows_of_two(setting, panels, expected):
    settings = [replace(setting, name=str(place)) for place in range(panels)]
    figure = drawn(figure_numbers(5, settings))
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == panels
    assert len({round(box.x0, 6) for box in boxes}) == expected[0]
    assert len({round(box.y0, 6) for box in boxes}) == expected[1]
    names = {one.get_text(): one.get_position() for one in figure.texts}
    for place, box in enumerate(boxes):
        x, y = names[str(place)]
        assert x == pytest.approx(box.x0)
        assert box.y1 < y < box.y1 + 60 / (72 * figure.get_figheight())
    assert boxes[0].y0 == max(box.y0 for box in boxes)


def test_a_long_name_takes_two_lines_and_leaves_the_panel_its_size(setting):
    short, long = (
        drawn(figure_numbers(2, replace(setting, name=name))) for name in ("short", "long " * 12)
    )
    assert long.texts[0].get_text().count("\n") == 1
    first, second = (f.axes[0].get_position().height * f.get_figheight() for f in (short, long))
    assert first == pytest.approx(second)
    assert long.get_figheight() > short.get_figheight()


def test_a_curve_goes_through_its_numbers_in_its_own_look(setting):
    numbers = figure_numbers(3, setting)
    (axes,) = drawn(numbers).axes
    lines = {line.get_gid(): line for line in axes.lines if len(line.get_xdata()) > 2}
    assert set(lines) == {f"rule:{name}" for name in numbers["panels"][0]["curves"]}
    for name, curve in numbers["panels"][0]["curves"].items():
        np.testing.assert_array_equal(lines[f"rule:{name}"].get_xdata(), curve["progress"])
        np.testing.assert_array_equal(lines[f"rule:{name}"].get_ydata(), curve["accuracy"])
    looks = {f"{line.get_color()} {line._unscaled_dash_pattern}" for line in lines.values()}
    assert len(looks) == 4
    assert {line.get_color() for gid, line in lines.items() if "clean" in gid} == {
        ink("soft-agreement")
    }
    assert axes.get_xlim() == (1, 8)
    written = {label.get_gid(): label.get_color() for label in axes.texts}
    assert written == {gid: line.get_color() for gid, line in lines.items()}


def test_ends_of_curves_show_their_accuracies(drawings, setting):
    texts = "".join(ET.fromstring(drawings[5]).itertext())
    for rule in ("single", "majority", "max-agreement"):
        (score,) = setting.record.score([rule])
        assert f"{rule} {100 * score.accuracy:.1f}" in texts
    (oracle,) = setting.clean.score(["single"])
    assert f"single, clean subset {100 * oracle.accuracy:.1f}" in texts


def test_figure_8_draws_both_sides_over_the_sizes(setting):
    sizes = [replace(setting, samples_per_class=size) for size in (100, 10)]
    numbers = figure_numbers(8, [*sizes, replace(setting, name="one size", samples_per_class=40)])
    many, one = drawn(numbers).axes
    lines = {line.get_gid(): line for line in many.lines if len(line.get_xdata()) == 2}
    for side in ("right", "wrong"):
        (line,) = (
            line
            for line in many.lines
            if line.get_gid() == f"rule:{side}" and list(line.get_xdata()) == [10, 100]
        )
        assert list(line.get_ydata()) == numbers["panels"][0][f"turned_{side}"]
    assert lines
    assert one.get_xlim() == (0, 80)
    assert many.get_ylim()[0] == 0
    assert many.get_ylim()[1] > max(numbers["panels"][0]["turned_right"])


def test_figure_6_draws_means_and_bands(setting):
    numbers = figure_numbers(6, setting)
    (axes,) = drawn(numbers).axes
    assert len(axes.collections) == 2
    for rule, sweep in numbers["panels"][0]["rules"].items():
        (line,) = (
            one
            for one in axes.lines
            if one.get_gid() == f"rule:{rule}" and len(one.get_xdata()) == 5
        )
        np.testing.assert_allclose(line.get_ydata(), sweep["mean"])
        (band,) = (one for one in axes.collections if one.get_gid() == f"rule:{rule}")
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx(np.add(sweep["mean"], sweep["deviation"]).max())
        assert heights.min() == pytest.approx(np.subtract(sweep["mean"], sweep["deviation"]).min())


def test_figure_7_draws_max_agreement_against_the_vote(setting):
    numbers = figure_numbers(7, setting)
    (axes,) = drawn(numbers).axes
    best, vote = axes.lines[:2]
    assert list(best.get_ydata()) == numbers["panels"][0]["max-agreement"]
    assert set(vote.get_ydata()) == {numbers["panels"][0]["majority"]}


def test_figures_2_and_4_draw_shares_of_their_counts(setting):
    numbers = figure_numbers(2, setting)
    counts = np.array(numbers["panels"][0]["wrong_predictions"])
    (axes,) = drawn(numbers).axes
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, counts / counts.sum())
    numbers = figure_numbers(4, setting)
    (axes,) = drawn(numbers).axes
    for stairs, side, sign in zip(axes.patches, ("right", "wrong"), (1, -1), strict=True):
        counts = np.array(numbers["panels"][0][side])
        np.testing.assert_allclose(stairs.get_data().values, sign * counts / counts.sum())
        np.testing.assert_allclose(stairs.get_data().edges, numbers["panels"][0]["edges"])


def test_a_saved_svg_stands_alone_on_white(setting, tmp_path):
    figure = paper_figure(figure_numbers(5, setting))
    save_figure(figure, tmp_path / "new" / "figure.svg")
    text = (tmp_path / "new" / "figure.svg").read_text()
    assert ET.fromstring(text.encode()).get("aria-label") == NEEDS[5].title
    assert "fill: #ffffff" in text


def test_a_saved_png_is_one(setting, tmp_path):
    save_figure(paper_figure(figure_numbers(2, setting)), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_of_no_figure_are_refused():
    with pytest.raises(ChoiceError, match="no figure 9"):
        paper_figure({"figure": 9, "title": "", "panels": []})


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
    predicted = [*PANEL["predicted"], PANEL["majority"], PANEL["max_agreement"]]
    for row, classes in zip(rows, predicted, strict=True):
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
def test_no_text_of_the_illustration_is_cut_off_or_covered(check_texts, picture, name):
    check_texts(draw(picture=picture, name=name))
