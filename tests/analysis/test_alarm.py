import numpy as np
import pytest
from overfitting import draw_run, right_chances

import accord
from accord.analysis import alarm, network_agreement
from accord.analysis.alarm import judge, watch
from accord.analysis.equal_pairs import count_equal_pairs
from accord.analysis.good_epochs import good_epochs
from accord.errors import ChoiceError
from accord.kernels.falls import smooth
from accord.rules.majority import Majority
from accord.store import ArrayRows, Facts


def overfitted(**options):
    return draw_run(right_chances(end=0.5), **options)


def clean(seed=0, **options):
    return draw_run(right_chances(seed=seed), seed=seed, **options)


def test_overfit_raises_the_alarm_and_names_an_epoch_before_it():
    found = watch(overfitted())
    assert found.alarm
    assert found.epoch == found.best_epoch
    assert 5 < found.epoch < 26  # agreement falls from epoch 20 to 32
    assert found.fall > 0.2
    assert found.sure >= 0.99
    assert "fell, beyond what samples and wobble explain" in found.reason


@pytest.mark.parametrize("seed", range(8))
def test_a_clean_run_raises_none_at_any_epoch(seed):
    pairs = count_equal_pairs(clean(seed, samples=300))
    assert not any(judge(pairs.until(end)).alarm for end in range(1, pairs.epochs + 1))


def test_without_an_alarm_there_is_no_epoch_before_overfit():
    found = watch(clean())
    assert (found.alarm, found.epoch) == (False, None)
    assert 0 <= found.best_epoch < 40
    assert found.reason in {
        "agreement has not fallen",
        "the peak of agreement is too recent to tell",
    }


def test_the_agreement_is_that_between_networks():
    rows = overfitted()
    found = watch(rows)
    np.testing.assert_array_equal(found.agreement, network_agreement(rows))
    np.testing.assert_array_equal(found.smoothed, smooth(found.agreement))


def test_on_the_record_that_comes_with_accord_the_epoch_is_nearly_the_oracles():
    rows = accord.open("example://cifar10-sym40").rows
    found = watch(rows)
    majority = Majority()(rows.select(epochs=[found.epoch])).labels
    assert found.alarm
    assert np.mean(majority == rows.truth()) >= 0.8689 - 0.015


def test_the_truth_has_no_say():
    rows = overfitted()
    labels = rows.read_labels(range(5), range(40), slice(None))
    blind = ArrayRows(labels, Facts(rows.samples, rows.classes))
    with_truth, without = watch(rows), watch(blind)
    assert (with_truth.epoch, with_truth.sure) == (without.epoch, without.sure)


def test_one_network_that_goes_astray_raises_none():
    rows = clean(networks=4)
    labels = rows.read_labels(range(4), range(40), slice(None)).copy()
    labels[2, 25:] = np.random.default_rng(0).integers(0, 5, labels[2, 25:].shape)
    found = watch(ArrayRows(labels, rows.facts))
    assert not found.alarm
    assert found.fall > 0.2
    assert found.reason == "only the agreement with network 2 has fallen"


def test_networks_are_named_by_their_own_numbers():
    rows = clean(networks=4)
    labels = rows.read_labels(range(4), range(40), slice(None)).copy()
    labels[2, 25:] = 0
    astray = ArrayRows(labels, rows.facts).select(networks=[1, 2, 3])
    assert watch(astray).reason == "only the agreement with network 2 has fallen"


def test_two_networks_are_enough():
    assert watch(overfitted(networks=2)).alarm


def test_a_handful_of_samples_is_not_sure():
    found = watch(overfitted(samples=4, networks=3))
    assert not found.alarm


def test_a_fall_that_few_samples_cause_is_doubted():
    """Agreement falls on one group of samples alone, as if a corner of the data were at fault."""
    labels = np.zeros((3, 30, 640), np.uint8)
    labels[:, :, 1::2] = 1
    labels[0, 15:, ::64] = 1
    labels[1, 15:, ::64] = 2
    found = judge(count_equal_pairs(ArrayRows(labels, Facts(640, 3))))
    assert found.fall >= 0.01
    assert found.sure < 0.99
    assert found.reason == "agreement fell no more than samples differ"


def test_a_fall_within_the_wobble_is_doubted():
    generator = np.random.default_rng(0)
    shares = 0.8 + generator.normal(0, 0.1, 40)
    shares[30:] -= 0.03
    labels = np.zeros((3, 40, 4000), np.uint8)
    for epoch, share in enumerate(np.clip(shares, 0, 1)):
        apart = generator.random(4000) > share
        labels[1, epoch, apart], labels[2, epoch, apart] = 1, 2
    found = judge(count_equal_pairs(ArrayRows(labels, Facts(4000, 3))))
    assert not found.alarm
    assert found.reason == "agreement fell no more than it wobbles"


def test_one_epoch_has_no_past():
    found = watch(clean().select(epochs=[0]))
    assert (found.alarm, found.epoch, found.best_epoch) == (False, None, 0)
    assert found.reason == "the peak of agreement is too recent to tell"


def test_all_samples_of_one_class_raise_none():
    rows = ArrayRows(np.zeros((3, 30, 50), np.uint8), Facts(50, 1))
    assert not watch(rows).alarm


def test_one_network_is_refused():
    with pytest.raises(ChoiceError, match=r"needs two; there is one\. Record another network"):
        watch(clean(networks=1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sure": 99}, "sure must lie between 0 and 1"),
        ({"sure": 1}, "sure must lie between 0 and 1"),
        ({"sure": 0}, "sure must lie between 0 and 1"),
        ({"least_fall": 1}, r"least_fall must lie in 0\.\.1"),
        ({"least_fall": -0.1}, r"least_fall must lie in 0\.\.1"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(ChoiceError, match=words):
        watch(clean(), **options)


def test_any_fall_may_be_enough():
    assert watch(overfitted(), least_fall=0).alarm


def test_epochs_after_the_fall_have_no_say(monkeypatch):
    judged = []

    def remember(rows):
        judged.append(rows.epochs)
        return good_epochs(rows)

    monkeypatch.setattr(alarm, "good_epochs", remember)
    rows = overfitted()
    before = judge(count_equal_pairs(rows)).before
    watch(rows)
    watch(clean())
    assert judged == [before, 40]
    assert 20 < before < 40


def test_the_least_fall_and_how_sure_are_choices():
    found = watch(overfitted())
    assert not watch(overfitted(), least_fall=found.fall + 0.001).alarm
    assert not watch(overfitted(), sure=0.9999).alarm  # 2,000 draws cannot be that sure
