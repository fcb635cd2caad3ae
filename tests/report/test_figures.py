"""Every figure is drawn, whatever the record, as an element that fits into a page."""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import pytest

import accord
from accord.errors import ChoiceError, ExtraMissing
from accord.report._cached_results import CURVES, Measured
from accord.report._drawing import with_variables
from accord.report._figures import FIGURES, draw_figure, save_figure
from accord.report._sentences import CAPTIONS, TITLES

LABELS = {
    "accuracy": ["epochs of training", "single", "majority", "soft-agreement", "best epoch"],
    "overfit": ["epochs of training", "single", "majority", "max-agreement", "best epoch"],
    "networks": ["networks", "majority", "max-agreement"],
    "epochs": ["equally spaced epochs", "majority", "max-agreement", "2", "4", "8"],
    "final-margin": ["final margin", "right: ", "wrong: ", "-0.5"],
    "margin": ["margin", "share of the samples"],
    "error-consensus": ["networks that give the same wrong class", "1", "2", "3"],
    "persistence": ["new runs", "runs that last", "right", "wrong"],
    "agreement": ["epochs of training", "share of the predictions that two networks share"],
    "reliability": ["score of the label", "share of votes", "mean probability", "ECE "],
    "risk-coverage": ["share of the samples that are answered", "probability-average"],
    "forgotten": ["epochs of training", "majority 0.0", "max-agreement"],
}
SHAPES = [(1, 1, 1, 2), (1, 5, 30, 2), (4, 1, 30, 3), (2, 33, 30, 1000), (40, 3, 30, 2)]


@pytest.fixture(scope="module")
def drawings(record):
    measured = Measured(record)
    return {name: draw_figure(name, measured) for name in FIGURES}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_xml_and_shows_its_labels(drawings, name):
    root = ET.fromstring(drawings[name])
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("role"), root.get("aria-label")) == ("img", TITLES[name])
    texts = "\n".join(root.itertext())
    assert [label for label in LABELS[name] if label not in texts] == []


def test_every_figure_has_a_title_and_all_on_the_page_a_caption():
    assert set(FIGURES) == set(TITLES) == {*CAPTIONS, "overfit"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"agreement"}))
def test_a_figure_is_drawn_for_any_record(make_record, name, shape):
    ET.fromstring(draw_figure(name, Measured(make_record(*shape))))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_where_nothing_is_wrong(make_record, name):
    ET.fromstring(draw_figure(name, Measured(make_record(3, 4, 20, 3, wrong=0))))


def test_labels_at_the_ends_tell_the_accuracies(drawings, record):
    texts = "".join(ET.fromstring(drawings["accuracy"]).itertext())
    for one in record.score([*CURVES, "oracle-best-epoch"]):
        name = "best epoch (oracle)" if one.oracle else one.rule
        assert f"{name} {100 * one.accuracy:.1f}" in texts


def test_probabilities_bring_their_rules_and_nothing_else_does(make_record):
    hard = draw_figure("accuracy", Measured(make_record(2, 3, 20, 3)))
    assert "soft-agreement" not in hard
    assert "probability-average" not in hard


def test_identifiers_of_two_figures_never_clash(drawings):
    found = [re.findall(r' id="([^"]+)"', drawing) for drawing in drawings.values()]
    everything = [one for some in found for one in some]
    assert len(set(everything)) == len(everything)
    for drawing, own in zip(drawings.values(), found, strict=True):
        referred = re.findall(r'(?:url\(#|href="#)([^")]+)', drawing)
        assert set(referred) <= set(own)


def test_no_drawing_brings_a_style_sheet_that_would_hold_for_the_page(drawings):
    assert not any("<style" in drawing for drawing in drawings.values())


def test_a_drawing_has_no_ground_of_its_own(drawings):
    assert "#ffffff" not in drawings["margin"]


def test_text_is_text_in_the_readers_own_face(drawings):
    assert "system-ui" in drawings["accuracy"]
    assert "<text" in drawings["accuracy"]


def test_what_belongs_to_a_rule_bears_its_name(drawings):
    rules = set(re.findall(r'data-rule="([^"]+)"', drawings["networks"]))
    assert rules == {"majority", "max-agreement"}


def test_colours_become_variables_with_the_light_one_in_reserve(drawings):
    assert "var(--ink-majority, #b84a0a)" in with_variables(drawings["networks"])
    assert re.findall(r"(?<!, )#[0-9a-f]{6}\b(?!-)", with_variables(drawings["accuracy"])) == []


def test_the_same_record_gives_the_same_drawing(drawings, record):
    assert draw_figure("persistence", Measured(record)) == drawings["persistence"]


def test_settings_of_the_user_neither_matter_nor_change(drawings, record):
    with mpl.rc_context({"text.usetex": True, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert draw_figure("networks", Measured(record)) == drawings["networks"]
        assert mpl.rcParams["svg.fonttype"] == "path"


def test_pyplot_is_left_alone(drawings):
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_a_saved_svg_stands_alone_on_white(record, tmp_path):
    save_figure("overfit", record, tmp_path / "new" / "overfit.svg")
    text = (tmp_path / "new" / "overfit.svg").read_text()
    ET.fromstring(text.encode())
    assert "fill: #ffffff" in text
    assert "var(" not in text


def test_a_saved_png_is_one(record, tmp_path):
    save_figure("overfit", record, tmp_path / "overfit.png")
    assert (tmp_path / "overfit.png").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused(record, tmp_path):
    with pytest.raises(ChoiceError, match=r"written as \.svg or \.png; got '\.gif'"):
        save_figure("overfit", record, tmp_path / "overfit.gif")


def test_the_readme_shows_what_is_drawn_of_the_example_record():
    picture = Path(__file__).parents[2] / "docs" / "images" / "accuracy.svg"
    drawn = draw_figure("overfit", Measured(accord.open("example://cifar10-sym40")))
    shown = [ET.fromstring(text).itertext() for text in (picture.read_bytes(), drawn)]
    said, wanted = ([text for text in texts if text.strip()] for texts in shown)
    assert said == wanted


def test_an_unknown_figure_is_refused_with_those_there_are(record):
    with pytest.raises(ChoiceError, match=r"no figure is called 'pie'. There are: accuracy, "):
        draw_figure("pie", Measured(record))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "accord.report._figures")
    monkeypatch.delitem(sys.modules, "accord.report._mpl")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ExtraMissing, match=r"matplotlib.*pip install 'accord\[report\]'"):
        import accord.report._figures  # noqa: F401
