import numpy as np
import pytest

import accord
from accord.analysis import compare_rules
from accord.analysis._trust._unknown_noise import fit_agreement_model
from accord.errors import PredictionError
from accord.rules import Context, find_rule
from accord.store import ArrayReader, SampleInfo

SAMPLES = 1_500


@pytest.fixture(scope="module")
def example():
    """Return real votes with the true classes."""
    record = accord.open("example://cifar10-sym40")
    every = slice(None, None, 3)
    return record.labels[:, every, :SAMPLES], record.truth[:SAMPLES].astype(int)


def with_noise(example, rate, *, toward_next=False, seed=0, samples=SAMPLES, **options):
    labels, truth = example[0][:, :, :samples], example[1][:samples]
    generator = np.random.default_rng(seed)
    wrong = generator.random(samples) < rate
    turned = 1 if toward_next else generator.integers(1, 10, size=samples)
    known = {"given": (truth + wrong * turned) % 10, "split": "test", **options}
    return Context(ArrayReader(labels, SampleInfo(samples, 10, **known)))


def found(context):
    return {one.rule: one for one in compare_rules(context, ["majority", "max-agreement"]).scores}


@pytest.mark.parametrize("toward_next", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.15, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_the_accuracy_is_estimated_within_five_points(example, rate, toward_next, seed):
    context = with_noise(example, rate, toward_next=toward_next, seed=seed)
    for rule, one in found(context).items():
        right = (context.once(find_rule(rule)).labels == example[1]).mean()
        assert one.corrected.value == pytest.approx(right, abs=0.05)
        assert one.corrected.low <= right <= one.corrected.high


def test_true_labels_need_no_correction(example):
    labels, truth = example
    scores = compare_rules(Context(ArrayReader(labels, SampleInfo(SAMPLES, 10, truth=truth))))
    assert [one.corrected for one in scores.scores] == [None] * len(scores.scores)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"networks": [0]}, "there is one"),
        ({"samples": 40}, "40 samples of 10 classes are too few: at least 50"),
        ({"epochs": range(3)}, "fewer than 20 votes"),
    ],
)
def test_without_enough_votes_or_samples_nothing_is_estimated(example, change, reason):
    context = with_noise(example, 0.3, samples=change.pop("samples", SAMPLES)).select(**change)
    with pytest.raises(PredictionError, match=reason):
        fit_agreement_model(context)
    scores = compare_rules(context, ["majority", "max-agreement"])
    assert any(reason in note for note in scores.notes)
    assert {one.corrected for one in scores.scores} == {None}


def test_labels_that_networks_memorised_are_not_corrected(example):
    with pytest.raises(PredictionError, match="trained on these samples"):
        fit_agreement_model(with_noise(example, 0.3, split="train"))


def test_votes_that_leave_open_who_is_wrong_give_no_estimate(example):
    """With 70 % of the labels wrong, 50 samples do not suffice."""
    with pytest.raises(PredictionError, match="leave open whether networks or labels are wrong"):
        fit_agreement_model(with_noise(example, 0.7, samples=50))


@pytest.mark.parametrize("seed", range(3))
def test_few_samples_give_a_wide_interval_around_the_accuracy(example, seed):
    context = with_noise(example, 0.3, seed=seed, samples=60)
    model = fit_agreement_model(context)
    estimate = model.correct(model.agreement)
    right = (context.once(find_rule("max-agreement")).labels == example[1][:60]).mean()
    assert estimate.low - 0.02 <= right <= estimate.high + 0.02
    assert estimate.high - estimate.low > 0.15


def test_abstentions_count_as_wrong(example):
    model = fit_agreement_model(with_noise(example, 0.3))
    half = model.correct(model.agreement / 2, coverage=0.5)
    assert half.value == pytest.approx(model.correct(model.agreement).value / 2, abs=0.02)


def test_missing_votes_give_no_estimate(example):
    context = with_noise(example, 0.3)
    context.has_missing = True
    with pytest.raises(PredictionError, match="some votes are missing"):
        fit_agreement_model(context)
