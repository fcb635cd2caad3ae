import numpy as np
import pytest
from overfitting import draw_run, right_chances

import accord
from accord._recorder import Recorder
from accord.analysis import _watch as alarm
from accord.analysis import network_agreement
from accord.analysis._watch import RecordFollower, score_by_rule, watch
from accord.errors import ChoiceError, RecordMissing
from accord.rules import Context, find_rule
from accord.rules import _overfitting as verdict
from accord.rules._overfitting import (
    LEAST_FALL,
    SURE,
    detect_overfitting,
    judge_agreement,
    score_epochs,
    smooth,
)
from accord.rules._pair_agreement import measure_pair_agreement
from accord.rules.majority import Majority
from accord.store import ArrayReader, SampleInfo, open_reader


def overfitted(**options):
    return draw_run(right_chances(end=0.5), **options)


def clean(seed=0, **options):
    return draw_run(right_chances(seed=seed), seed=seed, **options)


def detect(rows, sure=SURE, least_fall=LEAST_FALL, seed=0):
    return detect_overfitting(Context.of(rows), sure, least_fall, seed)


def settled(**options):
    """Agreement falls from epoch 12 on and, from epoch 30 on, rises above what it was."""
    learning, parting = right_chances(12, peak=0.8), np.linspace(0.78, 0.5, 18)
    return draw_run([*learning, *parting, *np.linspace(0.5, 0.97, 20)], **options)


def test_overfit_raises_the_alarm_and_names_an_epoch_before_it():
    found = watch(overfitted())
    assert found.alarm
    assert found.epoch == found.best_epoch
    assert 5 < found.epoch < 26  # agreement falls from epoch 20 to 32
    assert found.fall > 0.2
    assert found.sure >= 0.99
    assert "fell, beyond the scatter of samples" in found.reason


@pytest.mark.parametrize("seed", range(8))
def test_a_clean_run_raises_none_at_any_epoch(seed):
    pairs = measure_pair_agreement(clean(seed, samples=300))
    assert not any(judge_agreement(pairs.first(end)).alarm for end in range(1, pairs.epochs + 1))


def test_a_fall_stays_though_networks_settle_and_agree_more_than_ever():
    rows = settled()
    assert not judge_agreement(measure_pair_agreement(rows)).alarm
    found = detect(rows)
    assert found.alarm
    assert found.reason.endswith("the fluctuation of epochs, and rose later")


def test_where_late_epochs_are_the_best_there_is_no_alarm():
    """Though agreement fell for a while."""
    found = watch(settled())
    assert not found.alarm
    assert found.best_epoch > 40


def test_agreement_that_rose_later_is_judged_by_its_deepest_fall():
    rows = settled()
    pairs = measure_pair_agreement(rows)
    as_it_grew = [judge_agreement(pairs.first(end)) for end in range(1, pairs.epochs + 1)]
    deepest = max(as_it_grew, key=lambda verdict: verdict.fall)
    found = detect(rows)
    assert (found.fall, found.sure, found.before) == (deepest.fall, deepest.sure, deepest.before)


def test_an_alarm_that_was_raised_while_the_record_grew_stays(monkeypatch):
    """Agreement fell surely for a while, then wobbled, fell deeper and rose: seen on real runs."""

    def alarm_at(pairs, *options):
        raised = pairs.epochs in (20, 25)
        return verdict.Verdict(raised, f"after {pairs.epochs}", before=14 if raised else None)

    monkeypatch.setattr(verdict, "judge_agreement", alarm_at)
    rows = settled()
    found = detect(rows)
    assert found.alarm
    assert found.reason == "after 20, and rose later"  # the first
    assert found.before == 14


@pytest.mark.parametrize(
    "rows",
    [settled(), draw_run([*np.linspace(0.9, 0.5, 50)])],
    ids=["fell and rose", "falls to the end"],
)
def test_without_an_alarm_at_any_epoch_the_whole_record_is_judged(monkeypatch, rows):
    judged = []

    def calm(pairs, *options):
        judged.append(pairs.epochs)
        return verdict.Verdict(False, f"after {pairs.epochs}")

    monkeypatch.setattr(verdict, "judge_agreement", calm)
    assert detect(rows).reason == "after 50"
    assert set(judged) == set(range(1, 51))
    assert judged.count(50) == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_finished_record_has_an_alarm_wherever_agreement_alone_raised_one(seed):
    options = {"samples": 120, "networks": 3, "seed": seed}
    chances = right_chances(30, peak=0.7, wobble=0.06, seed=seed)
    rows = draw_run([*chances, *np.linspace(0.7, 0.97, 12)], **options)
    pairs = measure_pair_agreement(rows)
    grown = [judge_agreement(pairs.first(end)).alarm for end in range(1, pairs.epochs + 1)]
    assert detect(rows).alarm >= any(grown)


def test_an_alarm_that_remains_is_returned_as_it_is():
    rows = overfitted()
    pairs = measure_pair_agreement(rows)
    assert detect(rows) == judge_agreement(pairs)


@pytest.mark.parametrize("option", [{"sure": 0.9999}, {"least_fall": 0.9}])
def test_an_earlier_fall_must_meet_the_same_demands(option):
    rows = settled()
    pairs = measure_pair_agreement(rows)
    found = detect(rows, **option)
    assert found == judge_agreement(pairs, **option)
    assert not found.alarm


@pytest.mark.parametrize("rows", [overfitted(), settled()], ids=["overfitted", "settled"])
def test_the_seed_draws_the_curves(monkeypatch, rows):
    seeds = []

    def remember(curve, fall, *, seed):
        seeds.append(seed)
        return 1.0

    monkeypatch.setattr(verdict, "certainty_beyond_fluctuation", remember)
    detect(rows, seed=5)
    assert set(seeds) == {5}
    watch(overfitted(), seed=6)
    assert seeds[-1] == 6


def test_without_an_alarm_there_is_no_epoch_before_overfit():
    found = watch(clean())
    assert (found.alarm, found.epoch) == (False, None)
    assert 0 <= found.best_epoch < 40
    assert found.reason in {
        "agreement with leave-one-out has not fallen",
        "the peak of agreement with leave-one-out is too recent",
    }


def test_the_agreement_is_that_between_networks():
    rows = overfitted()
    found = watch(rows)
    np.testing.assert_array_equal(found.agreement, network_agreement(rows))
    np.testing.assert_array_equal(found.smoothed, smooth(found.agreement))


def test_on_the_record_that_comes_with_accord_the_epoch_is_nearly_the_oracles():
    rows = accord.open("example://cifar10-sym40").reader
    found = watch(rows)
    majority = Majority()(rows.select(epochs=[found.epoch])).labels
    assert found.alarm
    assert np.mean(majority == rows.truth()) >= 0.8689 - 0.015


def test_the_truth_has_no_effect():
    rows = overfitted()
    labels = rows.read_labels(range(5), range(40), slice(None))
    blind = ArrayReader(labels, SampleInfo(rows.samples, rows.classes))
    with_truth, without = watch(rows), watch(blind)
    assert (with_truth.epoch, with_truth.sure) == (without.epoch, without.sure)


def test_one_network_that_goes_astray_raises_none():
    rows = clean(networks=4)
    labels = rows.read_labels(range(4), range(40), slice(None)).copy()
    labels[2, 25:] = np.random.default_rng(0).integers(0, 5, labels[2, 25:].shape)
    found = watch(ArrayReader(labels, rows.sample_info))
    assert not found.alarm
    assert found.fall > 0.02
    assert found.reason == "only the agreement with network 2 has fallen"
    of_pairs = judge_agreement(measure_pair_agreement(ArrayReader(labels, rows.sample_info)))
    assert (of_pairs.alarm, of_pairs.before) == (False, None)


def test_networks_are_named_by_their_own_numbers():
    rows = clean(networks=4)
    labels = rows.read_labels(range(4), range(40), slice(None)).copy()
    labels[2, 25:] = 0
    astray = ArrayReader(labels, rows.sample_info).select(networks=[1, 2, 3])
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
    found = judge_agreement(measure_pair_agreement(ArrayReader(labels, SampleInfo(640, 3))))
    assert found.fall >= 0.01
    assert found.sure < 0.99
    assert found.reason == "agreement fell no further than the scatter of samples explains"


def test_a_fall_within_the_wobble_is_doubted():
    generator = np.random.default_rng(0)
    shares = 0.8 + generator.normal(0, 0.1, 40)
    shares[30:] -= 0.03
    labels = np.zeros((3, 40, 4000), np.uint8)
    for epoch, share in enumerate(np.clip(shares, 0, 1)):
        apart = generator.random(4000) > share
        labels[1, epoch, apart], labels[2, epoch, apart] = 1, 2
    found = judge_agreement(measure_pair_agreement(ArrayReader(labels, SampleInfo(4000, 3))))
    assert not found.alarm
    assert found.reason == "agreement fell no further than the fluctuation of epochs explains"


def test_one_epoch_has_no_past():
    found = watch(clean().select(epochs=[0]))
    assert (found.alarm, found.epoch, found.best_epoch) == (False, None, 0)
    assert found.reason == "the peak of agreement with leave-one-out is too recent"


def test_all_samples_of_one_class_raise_none():
    rows = ArrayReader(np.zeros((3, 30, 50), np.uint8), SampleInfo(50, 1))
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


def parting(*, classes):
    """Networks part from epoch 15 on, and as they do so they follow the same wrong labels."""
    generator = np.random.default_rng(0)
    truth = np.arange(900) % classes
    right = right_chances(end=0.5)[:, np.newaxis] > generator.random((5, 40, 900))
    others = (truth + generator.integers(1, classes, (5, 40, 900))) % classes
    labels = np.where(right, truth, others).astype(np.uint8)
    return ArrayReader(labels, SampleInfo(900, classes, truth=truth))


def test_with_two_classes_epochs_after_the_fall_do_not_count(monkeypatch):
    scored = []

    def remember(rows, labels):
        scored.append(rows.epochs)
        return score_epochs(rows, labels)

    monkeypatch.setattr(alarm, "score_epochs", remember)
    rows = parting(classes=2)
    found, fall = watch(rows), detect(rows)
    assert (found.alarm, found.reason) == (True, fall.reason)
    watch(parting(classes=3))
    assert scored == [fall.before, 40]
    assert 20 < fall.before < 40


@pytest.mark.parametrize(("classes", "rule"), [(2, "dawid-skene"), (3, "leave-one-out")])
def test_epochs_are_scored_by_majority_votes_that_equal_the_rule(classes, rule):
    rows = parting(classes=classes)
    found = score_by_rule(Context.of(rows))
    expected = find_rule(rule)(rows).labels
    for epoch in range(rows.epochs):
        same = Majority()(rows.select(epochs=[epoch])).labels == expected
        assert found.shares[epoch] == np.mean(same)
        by_group = [same[group::64].mean() for group in range(64)]
        np.testing.assert_allclose(found.by_group[:, epoch], by_group)
    assert found.sizes.tolist() == [len(range(group, 900, 64)) for group in range(64)]
    assert found.best == int(np.argmax(found.shares))


def test_the_chosen_epoch_is_nearly_the_oracles():
    rows = overfitted()
    hits = [
        np.mean(Majority()(rows.select(epochs=[epoch])).labels == rows.truth())
        for epoch in range(rows.epochs)
    ]
    assert hits[watch(rows).epoch] >= max(hits) - 0.015
    assert hits[-1] < max(hits) - 0.05


def test_networks_that_predict_one_class_at_first_raise_none():
    labels = clean().read_labels(range(5), range(40), slice(None)).copy()
    labels[:, :8] = 3
    assert not watch(ArrayReader(labels, clean().sample_info)).alarm


def test_the_least_fall_and_how_sure_are_choices():
    found = watch(overfitted())
    assert not watch(overfitted(), least_fall=found.fall + 0.001).alarm
    assert not watch(overfitted(), sure=0.9999).alarm  # 2,000 draws cannot be that sure


SAMPLES, CLASSES, EPOCHS = 600, 5, 40


@pytest.fixture(scope="module")
def falling():
    rows = draw_run(right_chances(EPOCHS, end=0.5), networks=3, samples=SAMPLES, classes=CLASSES)
    return rows.read_labels(range(3), range(EPOCHS), slice(None))


def recorder(path, network):
    return Recorder(path, network=network, samples=SAMPLES, classes=CLASSES)


def grow(path, labels, *, network, epochs):
    with recorder(path, network) as writer:
        for epoch in range(writer.epochs, epochs):
            writer.record(labels[network, epoch])


def test_each_epoch_is_returned_once_and_the_alarm_once(tmp_path, falling):
    follower = RecordFollower(tmp_path / "record")
    updates = []
    for until in (3, 3, 10, 31, EPOCHS):
        for network in range(3):
            grow(tmp_path / "record", falling, network=network, epochs=until)
        seen = follower.poll()
        updates += seen
        assert len(updates) == until
    assert [one.epoch for one in updates] == list(range(EPOCHS))
    whole = watch(open_reader(tmp_path / "record"))
    np.testing.assert_array_equal([one.agreement for one in updates], whole.agreement)
    alarms = [one for one in updates if one.best_epoch is not None]
    assert len(alarms) == 1
    assert alarms[0].verdict.alarm
    assert 20 < alarms[0].epoch < EPOCHS
    assert alarms[0].best_epoch < alarms[0].epoch
    assert follower.alarmed


def test_a_writer_may_hold_the_record_meanwhile(tmp_path, falling):
    grow(tmp_path / "record", falling, network=0, epochs=5)
    follower = RecordFollower(tmp_path / "record")
    with recorder(tmp_path / "record", 1) as writer:
        for epoch in range(3):
            writer.record(falling[1, epoch])
            assert [one.epoch for one in follower.poll()] == [epoch]


def test_until_there_are_two_networks_with_epochs_it_waits(tmp_path, falling):
    follower = RecordFollower(tmp_path / "record")
    assert follower.poll() == []
    assert "record: there is no record yet. Is the path right?" in follower.waiting_for
    assert isinstance(follower.missing, RecordMissing)
    with recorder(tmp_path / "record", 0):
        assert follower.poll() == []
    assert "has no epochs yet" in follower.waiting_for
    assert follower.missing is None
    grow(tmp_path / "record", falling, network=0, epochs=2)
    assert follower.poll() == []
    assert "one network so far; agreement needs two" in follower.waiting_for
    with recorder(tmp_path / "record", 1):
        assert follower.poll() == []
    assert "one network so far; agreement needs two" in follower.waiting_for  # 1 has no epochs
    grow(tmp_path / "record", falling, network=1, epochs=2)
    assert [one.epoch for one in follower.poll()] == [0, 1]
    assert follower.waiting_for == ""


def test_an_example_that_is_missing_is_not_waited_for():
    with pytest.raises(RecordMissing, match="no such example"):
        RecordFollower("example://none").poll()


def test_a_network_that_joins_begins_it_anew(tmp_path, falling):
    for network in (0, 1):
        grow(tmp_path / "record", falling, network=network, epochs=EPOCHS)
    follower = RecordFollower(tmp_path / "record")
    assert len(follower.poll()) == EPOCHS
    assert follower.alarmed
    grow(tmp_path / "record", falling, network=2, epochs=4)
    assert [one.epoch for one in follower.poll()] == [0, 1, 2, 3]
    assert not follower.alarmed
    chosen = RecordFollower(tmp_path / "record", networks=[0, 1])
    assert len(chosen.poll()) == EPOCHS


def test_how_sure_and_how_deep_are_choices(tmp_path, falling):
    for network in (0, 1):
        grow(tmp_path / "record", falling, network=network, epochs=EPOCHS)
    for options in ({"sure": 0.99999}, {"least_fall": 0.9}):
        follower = RecordFollower(tmp_path / "record", **options)
        follower.poll()
        assert not follower.alarmed
