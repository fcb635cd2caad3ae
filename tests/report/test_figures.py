"""Every figure is drawn, whatever the record, as an element that fits into a page."""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import accord
from accord._record import Record
from accord.analysis import RiskCoverage, summarize
from accord.analysis._report_numbers import CURVES
from accord.errors import ChoiceError, ExtraMissing
from accord.report._drawing import save_figure, styled, svg_of, with_variables
from accord.report._figures import (
    FIGURES,
    MOST_POINTS,
    coverage_at,
    forgotten_figure,
    record_figure,
    reliability_figure,
    risk_coverage_figure,
)
from accord.report._sentences import CAPTIONS, TITLES
from accord.store import ArrayReader, make_sample_info

LABELS = {
    "accuracy": ["epochs of training", "single", "majority", "soft-agreement", "best epoch"],
    "overfit": ["epochs of training", "single", "majority", "max-agreement", "best epoch"],
    "networks": ["networks", "majority", "max-agreement"],
    "epochs": ["equally spaced epochs", "majority", "max-agreement", "2", "4", "8"],
    "final-margin": ["final margin", "right: ", "wrong: ", "-0.5"],
    "margin": ["margin", "share of the samples"],
    "error-consensus": ["networks that give the same wrong class", "1", "2", "3"],
    "persistence": ["new runs", "runs that last", "right", "wrong"],
    "agreement": ["epochs of training", "share of predictions that two networks share"],
    "reliability": ["score of the label", "share of votes", "mean probability", "ECE "],
    "risk-coverage": ["share of the samples that are answered", "probability-average"],
    "forgotten": ["epochs of training", "majority 0.0", "max-agreement"],
}
SHAPES = [(1, 1, 1, 2), (1, 5, 30, 2), (4, 1, 30, 3), (2, 33, 30, 1000), (40, 3, 30, 2)]


@pytest.fixture(scope="module")
def drawings(record):
    measured = summarize(record.reader)
    return {name: svg_of(record_figure(name, measured)) for name in FIGURES}


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
    ET.fromstring(svg_of(record_figure(name, summarize(make_record(*shape).reader))))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_where_nothing_is_wrong(make_record, name):
    ET.fromstring(svg_of(record_figure(name, summarize(make_record(3, 4, 20, 3, wrong=0).reader))))


def test_labels_at_line_ends_show_the_accuracies(drawings, record):
    texts = "".join(ET.fromstring(drawings["accuracy"]).itertext())
    for one in record.score([*CURVES, "oracle-best-epoch"]):
        name = "best epoch (oracle)" if one.oracle else one.rule
        assert f"{name} {100 * one.accuracy:.1f}" in texts


def test_probabilities_bring_their_rules_and_nothing_else_does(make_record):
    hard = svg_of(record_figure("accuracy", summarize(make_record(2, 3, 20, 3).reader)))
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
    assert svg_of(record_figure("persistence", summarize(record.reader))) == drawings["persistence"]


def test_settings_of_the_user_neither_matter_nor_change(drawings, record):
    with mpl.rc_context({"text.usetex": True, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert svg_of(record_figure("networks", summarize(record.reader))) == drawings["networks"]
        assert mpl.rcParams["svg.fonttype"] == "path"


def test_pyplot_is_left_alone(drawings):
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_a_saved_svg_stands_alone_on_white(record, tmp_path):
    save_figure(
        record_figure("overfit", summarize(record.reader)), tmp_path / "new" / "overfit.svg"
    )
    text = (tmp_path / "new" / "overfit.svg").read_text()
    ET.fromstring(text.encode())
    assert "fill: #ffffff" in text
    assert "var(" not in text


def test_a_saved_png_is_one(record, tmp_path):
    save_figure(record_figure("overfit", summarize(record.reader)), tmp_path / "overfit.png")
    assert (tmp_path / "overfit.png").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused(record, tmp_path):
    with pytest.raises(ChoiceError, match=r"written as \.svg or \.png; got '\.gif'"):
        save_figure(record_figure("overfit", summarize(record.reader)), tmp_path / "overfit.gif")


def test_the_readme_shows_what_is_drawn_of_the_example_record():
    picture = Path(__file__).parents[2] / "docs" / "images" / "accuracy.svg"
    drawn = svg_of(
        record_figure("overfit", summarize(accord.open("example://cifar10-sym40").reader))
    )
    shown = [ET.fromstring(text).itertext() for text in (picture.read_bytes(), drawn)]
    predicted, wanted = ([text for text in texts if text.strip()] for texts in shown)
    assert predicted == wanted


def test_an_unknown_figure_is_refused_with_those_there_are(record):
    with pytest.raises(ChoiceError, match=r"no figure is called 'pie'. Figures: accuracy, "):
        svg_of(record_figure("pie", summarize(record.reader)))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "accord.report._figures")
    monkeypatch.delitem(sys.modules, "accord.report._mpl")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ExtraMissing, match=r"matplotlib.*pip install 'accord\[report\]'"):
        import accord.report._figures  # noqa: F401


def axes_of(draw, record):
    with styled("test"):
        return draw(summarize(record.reader)).axes[0]


def line(axes, rule):
    return next(one for one in axes.lines if one.get_label() == rule)


def texts(name, record):
    return "\n".join(
        ET.fromstring(svg_of(record_figure(name, summarize(record.reader)))).itertext()
    )


def caption(name, record):
    return CAPTIONS[name](summarize(record.reader)).replace("\N{NO-BREAK SPACE}", " ")


def test_reliability_is_drawn_bin_by_bin(record):
    found = record.calibration()
    full = found.counts > 0
    drawn = line(axes_of(reliability_figure, record), "max-agreement")
    np.testing.assert_array_equal(drawn.get_xdata(), found.confidence[full])
    np.testing.assert_array_equal(drawn.get_ydata(), found.accuracy[full])


def test_a_fuller_bin_has_a_larger_dot(record):
    found = record.calibration()
    dots = axes_of(reliability_figure, record).collections[0].get_sizes()
    counts = found.counts[found.counts > 0]
    order = np.argsort(counts, kind="stable")
    assert (np.diff(dots[order]) >= 0).all()
    assert dots.max() == pytest.approx(64)
    assert dots.min() < 64


def test_the_calibration_errors_stand_beside_the_curves(record):
    shown = texts("reliability", record)
    for rule in ("max-agreement", "probability-average"):
        assert f"ECE {100 * record.calibration(rule).error:.1f} points" in shown


def test_two_calibration_errors_never_overlap(record):
    axes = axes_of(reliability_figure, record)
    first, second = (one.get_position()[1] for one in axes.texts)
    assert abs(first - second) * axes.get_window_extent().height > 26


def test_without_probabilities_the_votes_are_alone(make_record):
    record = make_record(3, 6, 60, 3)
    assert "mean probability" not in texts("reliability", record)
    assert "probability-average" not in texts("risk-coverage", record)
    assert "mean probability" not in caption("reliability", record)
    assert "mean probability" not in caption("risk-coverage", record)


def test_shares_of_votes_are_underconfident_or_overconfident(make_record):
    modest = make_record(3, 8, 400, 4, wrong=0.4)
    assert modest.predict().scores.mean() < (modest.predict().labels == modest.truth).mean()
    assert "are underconfident here" in caption("reliability", modest)
    sample_info = make_sample_info(samples=4, classes=2, truth=[1, 1, 1, 0])
    bold = Record(ArrayReader(np.zeros((2, 3, 4), int), sample_info))
    document = caption("reliability", bold)
    assert "are overconfident here: 100.0 % on average, with 25.0 % right" in document
    assert document.endswith("line: 75.0 points.")


def test_risk_is_drawn_over_coverage_up_to_all_samples(record):
    found = record.risk_coverage()
    drawn = line(axes_of(risk_coverage_figure, record), "max-agreement")
    shown = found.coverage >= 0.05
    np.testing.assert_array_equal(drawn.get_xdata(), found.coverage[shown])
    np.testing.assert_array_equal(drawn.get_ydata(), found.risk[shown])
    assert f"of which {100 * found.risk[-1]:.1f} % are wrong" in caption("risk-coverage", record)
    assert f"(AURC) is {100 * found.area:.1f} %." in caption("risk-coverage", record)


def test_mean_probability_is_judged_by_its_own_labels():
    """The votes are right and the last probabilities wrong."""
    sample_info = make_sample_info(samples=40, classes=2, truth=np.zeros(40, int))
    labels = np.zeros((2, 3, 40), int)
    labels[:, -1] = 1
    soft = np.eye(2, dtype=np.float16)[labels]
    measured = summarize(Record(ArrayReader(labels, sample_info, probabilities=soft)).reader)
    assert measured.judged.risks["max-agreement"].risk.tolist() == [0.0]
    assert measured.judged.risks["probability-average"].risk.tolist() == [1.0]
    assert measured.judged.reliability["probability-average"].error == 1


def test_a_long_curve_is_thinned_and_keeps_its_end(make_hard):
    record = make_hard(6, 120, 3000, 2)
    found = record.risk_coverage()
    assert len(found.risk) > MOST_POINTS
    drawn = line(axes_of(risk_coverage_figure, record), "max-agreement")
    assert len(drawn.get_xdata()) == MOST_POINTS
    assert drawn.get_xdata()[-1] == 1
    assert drawn.get_ydata()[-1] == found.risk[-1]


def test_the_coverage_of_a_risk_is_the_largest_that_keeps_it():
    curve = RiskCoverage(
        np.array([0.9, 0.8, 0.7, 0.6]),
        np.array([0.1, 0.4, 0.7, 1.0]),
        np.array([0.2, 0.05, 0.04, 0.1]),
    )
    assert coverage_at(curve, 0.05) == 0.7
    assert coverage_at(curve, 0.04) == 0.7
    assert coverage_at(curve, 0.1) == 1
    assert coverage_at(curve, 0.03) is None


def test_a_risk_that_one_lucky_sample_keeps_is_kept_nowhere():
    curve = RiskCoverage(
        np.array([0.9, 0.8, 0.7]), np.array([0.001, 0.05, 1.0]), np.array([0.0, 0.05, 0.2])
    )
    assert coverage_at(curve, 0.04) is None
    assert coverage_at(curve, 0.05) == 0.05


def test_small_risks_are_marked_where_some_but_not_all_can_be_answered(make_record, hard):
    axes = axes_of(risk_coverage_figure, hard)
    diamonds = [one for one in axes.lines if one.get_marker() == "D"]
    assert [(one.get_xdata()[0], one.get_ydata()[0]) for one in diamonds] == [
        (coverage_at(hard.risk_coverage(), risk), risk) for risk in (0.05, 0.01)
    ]
    assert {"5 % wrong", "1 % wrong"} <= {one.get_text() for one in axes.texts}
    assert "% wrong" not in texts("risk-coverage", make_record(3, 4, 20, 3, wrong=0))


@pytest.mark.parametrize(("share", "side"), [(0.3, "left"), (0.9, "right")])
def test_a_mark_is_named_on_the_side_with_room(share, side):
    """The sure samples are right, the others wrong: 5 % wrong is just above the sure ones."""
    samples = 1000
    sure = np.arange(samples) < share * samples
    labels = np.where(sure, 0, [[[0]], [[0]], [[1]]])
    sample_info = make_sample_info(samples=samples, classes=2, truth=np.where(sure, 0, 1))
    marks = axes_of(risk_coverage_figure, Record(ArrayReader(labels, sample_info))).texts
    named = {one.get_text(): one.get_ha() for one in marks}
    assert named["5 % wrong"] == named["1 % wrong"] == side


def test_what_each_epoch_knew_of_the_forgotten_is_drawn(record):
    found = record.forgetting()
    gone = found.forgotten
    axes = axes_of(forgotten_figure, record)
    drawn = line(axes, "majority")
    np.testing.assert_allclose(drawn.get_ydata(), found.knew / len(gone))
    kept = (record.predict().labels == record.truth)[gone].mean()
    assert f"max-agreement {100 * kept:.1f}" in texts("forgotten", record)
    document = caption("forgotten", record)
    assert f"the {len(gone)} forgotten samples" in document
    assert f"It is highest, {100 * found.knew.max() / len(gone):.1f} %" in document
    assert f"is right on {100 * kept:.1f} %." in document
    assert f"after {found.best_epoch + 1} of 8 epochs" in document


def test_the_caption_notes_that_no_sample_was_forgotten(make_record):
    assert "no sample was forgotten" in caption("forgotten", make_record(3, 4, 20, 3, wrong=0))


def test_fractions_of_epochs_are_rounded_to_two_digits(record):
    class Uneven(ArrayReader):
        def networks_info(self):
            return tuple(
                type(one)(one.network, tuple(p / 7 for p in one.progress), one.metrics)
                for one in super().networks_info()
            )

    rows = Uneven(record.labels[:], record.reader.sample_info)
    document = caption("forgotten", Record(rows))
    assert re.search(r"after \d(\.\d\d?)? of \d(\.\d\d?)? epochs", document)
