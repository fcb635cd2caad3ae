"""Figures of trust show what was measured."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from accord._record import Record
from accord.analysis import RiskCoverage
from accord.report._cached_results import Measured
from accord.report._drawing import styled
from accord.report._figures import (
    MOST_POINTS,
    coverage_at,
    draw_figure,
    forgotten_figure,
    reliability_figure,
    risk_coverage_figure,
)
from accord.report._sentences import CAPTIONS
from accord.store import ArrayReader, make_sample_info


def axes_of(draw, record):
    with styled("test"):
        return draw(Measured(record)).axes[0]


def line(axes, rule):
    return next(one for one in axes.lines if one.get_label() == rule)


def texts(name, record):
    return "\n".join(ET.fromstring(draw_figure(name, Measured(record))).itertext())


def caption(name, record):
    return CAPTIONS[name](Measured(record)).replace("\N{NO-BREAK SPACE}", " ")


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
    assert "probability" not in caption("reliability", record) + caption("risk-coverage", record)


def test_shares_of_votes_are_modest_or_bold(make_record):
    modest = make_record(3, 8, 400, 4, wrong=0.4)
    assert modest.predict().scores.mean() < (modest.predict().labels == modest.truth).mean()
    assert "are modest here" in caption("reliability", modest)
    sample_info = make_sample_info(samples=4, classes=2, truth=[1, 1, 1, 0])
    bold = Record(ArrayReader(np.zeros((2, 3, 4), int), sample_info))
    told = caption("reliability", bold)
    assert "are bold here: 100.0 % on average, where 25.0 % are right" in told
    assert told.endswith("line: 75.0 points.")


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
    measured = Measured(Record(ArrayReader(labels, sample_info, probabilities=soft)))
    assert measured.risks["max-agreement"].risk.tolist() == [0.0]
    assert measured.risks["probability-average"].risk.tolist() == [1.0]
    assert measured.reliability["probability-average"].error == 1


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
    told = caption("forgotten", record)
    assert f"Of the {len(gone)} forgotten samples" in told
    assert f"The most, {100 * found.knew.max() / len(gone):.1f} %" in told
    assert f"is right on {100 * kept:.1f} %." in told
    assert f"known after {found.best_epoch + 1} epoch" in told


def test_where_nothing_was_forgotten_the_caption_says_so(make_record):
    assert "nothing was forgotten" in caption("forgotten", make_record(3, 4, 20, 3, wrong=0))


def test_parts_of_epochs_are_told_in_two_digits(record):
    class Uneven(ArrayReader):
        def networks_info(self):
            return tuple(
                type(one)(one.network, tuple(p / 7 for p in one.progress), one.metrics)
                for one in super().networks_info()
            )

    rows = Uneven(record.labels[:], record.reader.sample_info)
    told = caption("forgotten", Record(rows))
    assert re.search(r"after \d(\.\d\d?)? epochs? of training", told)
