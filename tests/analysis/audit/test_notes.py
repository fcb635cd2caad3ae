import dataclasses

import numpy as np
import pytest
from memorised import NAMES, memorised_rows

from accord.analysis._audit._audit import _begins_late, audit, likeliest_epochs
from accord.analysis._audit._evidence import Contradiction
from accord.analysis._audit._notes import audit_notes
from accord.rules import Context
from accord.store import ArrayReader, SampleInfo

LATE = "wrong labels memorised before then are not found"


@pytest.fixture(scope="module")
def found():
    return audit(memorised_rows())


def notes_of(found, **changes):
    sample_info = SampleInfo(600, 5, split="train", class_names=NAMES)
    return audit_notes(dataclasses.replace(found, **changes), sample_info)


def test_a_good_audit_has_no_notes(found):
    assert notes_of(found) == []


@pytest.mark.parametrize("split", ["test", "validation"])
def test_held_out_samples_have_a_note(found, split):
    (note,) = audit_notes(found, memorised_rows(split=split).sample_info)
    assert note.startswith(f"the samples of the record belong to the {split} split, on")
    assert audit_notes(found, memorised_rows(split="part").sample_info) == []


def test_a_late_first_epoch_has_a_note():
    record = memorised_rows(epochs=24)
    for first, late in ((0, False), (10, True), (14, True)):
        rows = record.select(epochs=range(first, 24))
        notes = audit_notes(audit(rows), rows.sample_info)
        assert any(LATE in note for note in notes) is late


def test_trained_networks_at_the_first_epoch_have_a_note():
    record = memorised_rows(samples=2000)
    given, truth = record.sample_info.given, record.truth()
    found_out = np.arange(2000) % 2 == 0  # the other wrong labels are known by heart
    labels = np.tile(np.where(found_out, truth, given), (4, 6, 1)).astype(np.uint16)
    assert audit(ArrayReader(labels, record.sample_info)).begins_late
    beginners = record.read_labels(range(4), range(2), slice(None))
    early = ArrayReader(np.concatenate([beginners, labels], axis=1), record.sample_info)
    assert not audit(early).begins_late


@pytest.mark.parametrize(
    ("fall", "alike", "first", "late"),
    [
        (0.06, 0.75, 1.0, True),
        (0.08, 0.75, 1.0, False),  # beginners learn fast
        (0.06, 0.65, 1.0, False),  # and contradict different labels
        (0.08, 0.65, 1.1, True),  # but these are known to be none
    ],
)
def test_untrained_networks_are_recognised_by_their_first_epochs(fall, alike, first, late):
    share = 0.5 * np.array([1, 1 - fall / 2, 1, 1 - fall, 0.5])
    seen = Contradiction(share, share, alike * share, 0 * share, np.zeros(5), share)
    assert _begins_late(seen, first) is late
    rising = Contradiction(share[::-1], share, share, 0 * share, np.zeros(5), share)
    assert not _begins_late(rising, 9.0)


def test_the_note_on_a_late_beginning_names_the_epoch_if_known(found):
    (known,) = notes_of(found, begins_late=True, first_epoch=51.0)
    assert known.startswith(f"recording began at epoch 51: {LATE}")
    (likely,) = notes_of(found, begins_late=True, first_epoch=1.0)
    assert likely.startswith("networks contradict the same labels from the first epoch on")


def test_contradiction_that_rises_is_no_late_beginning():
    record = memorised_rows(epochs=24)
    rows = record.select(epochs=[23, 22, 16, 15, 14])
    assert not audit(rows).begins_late


def test_inconclusive_votes_have_a_note(found):
    (note,) = notes_of(found, log_odds=np.full(600, np.log(0.3 / 0.7)))
    assert "30 in 100 labels are misjudged" in note
    assert "noise rate of 30.0 %" in note
    assert notes_of(found, log_odds=np.full(600, np.log(0.09 / 0.91))) == []


def test_few_flags_beside_many_contradictions_have_a_note(found):
    few = np.arange(600) < 30
    (note,) = notes_of(found, flagged=few, beyond_chance=0.11)
    assert note.startswith("at the most informative epoch networks contradict 11 in 100 ")
    assert "5 in 100 are flagged" in note
    assert "make the same errors that early, or the noise rate is far" in note
    assert notes_of(found, flagged=few, beyond_chance=0.1) == []
    assert notes_of(found, flagged=few & False, beyond_chance=0.049) == []


@pytest.mark.parametrize("epochs", [1, 5])
def test_votes_without_an_informative_epoch_have_one_note(epochs):
    sample_info = SampleInfo(60, 3, given=np.arange(60) % 3)
    constant = audit(ArrayReader(np.zeros((3, epochs, 60), np.uint8), sample_info))
    assert constant.suspicion.max() < 1e-300
    (note,) = audit_notes(constant, sample_info)
    assert note.startswith("no epoch is informative: at none do two networks contradict a label")
    assert "the order of the ranking is arbitrary" in note


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize(("networks", "classes"), [(2, 2), (3, 10), (10, 3)])
def test_the_ranking_of_one_epoch_of_guesses_is_not_called_reliable(split, networks, classes):
    generator = np.random.default_rng(0)
    notes = []
    for _ in range(20):
        given, guesses = (
            generator.integers(0, classes, shape) for shape in (300, (networks, 1, 300))
        )
        sample_info = SampleInfo(300, classes, split=split, given=given)
        notes += audit_notes(audit(ArrayReader(guesses.astype(np.uint8), sample_info)), sample_info)
    assert not any("the ranking is more reliable" in note for note in notes)
    assert any(
        "only one epoch is informative: the ranking may be arbitrary" in one for one in notes
    )


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_ranking_of_one_informative_epoch_is_called_reliable(split):
    rows = memorised_rows(split=split).select(epochs=[6])
    found = audit(rows)
    assert found.score.auroc > 0.8
    notes = audit_notes(found, rows.sample_info)
    assert len(notes) == (2 if split == "test" else 1)
    assert "only one epoch is informative: the ranking is more reliable" in notes[-1]


def test_notes_distinguish_classes_predicted_late_and_never(found):
    fours, threes = (found.given == 4).sum(), (found.given == 3).sum()
    never, late = notes_of(found, unpredicted=(3, 4), never_predicted=(4,))
    assert never == (
        f"no network ever predicts eel: the {fours} labels of this class could not be audited "
        "and are ranked last"
    )
    assert late.startswith("at the informative epochs no network predicts dog:")
    assert f"the {threes} labels of this class are ranked by the votes of other epochs" in late


def test_one_label_is_singular(found):
    given = np.where(np.arange(600) == 0, 4, 0)
    (note,) = notes_of(found, given=given, unpredicted=(4,), never_predicted=(4,))
    assert "eel: the only label of this class could not" in note


def test_many_classes_are_not_all_named(found):
    many = tuple(range(12))
    (note,) = audit_notes(
        dataclasses.replace(found, unpredicted=many, never_predicted=many),
        SampleInfo(600, 12, split="train"),
    )
    assert "predicts 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more: the 600 labels" in note


SPARED = "flagged: either they have not learnt the class"


def test_contradicted_classes_without_flags_have_a_note():
    record = memorised_rows(samples=2000)
    guesses = np.random.default_rng(0).integers(0, 5, (4, 12, 2000)).astype(np.uint16)
    found = audit(ArrayReader(guesses, record.sample_info))
    assert not found.flagged.any()
    (note,) = audit_notes(found, record.sample_info)
    assert note.startswith("networks mostly contradict 0, 1, 2, 3, 4, and none of the 2000 labels")
    assert SPARED in note


def rare_class():
    """Votes of networks that know a class of one in a hundred, most labels of which are wrong."""
    generator = np.random.default_rng(0)
    truth = np.arange(2000) < 20
    given = np.where(generator.random(2000) < 0.05, ~truth, truth)
    memorised = generator.random((4, 12, 2000)) < np.linspace(0, 0.6, 12)[:, np.newaxis]
    guessed = generator.random((4, 12, 2000)) < 0.2
    votes = np.where(memorised, given, np.where(guessed, generator.random(2000) < 0.5, truth))
    sample_info = SampleInfo(2000, 2, split="train", given=given.astype(int))
    return ArrayReader(votes.astype(np.uint16), sample_info)


def test_a_rare_class_contradicted_throughout_has_a_note():
    rows = rare_class()
    found = audit(rows)
    assert not found.flagged.any()
    (note,) = audit_notes(found, rows.sample_info)
    assert note.startswith("networks mostly contradict 1, and none of the 122 labels")
    assert SPARED in note


@pytest.mark.parametrize(("samples", "expected"), [(5, False), (6, True)])
def test_a_hundredth_of_the_labels_is_enough_for_a_note(found, samples, expected):
    contradicted = np.arange(600) < samples
    notes = notes_of(
        found,
        given=np.where(contradicted, 4, 0),
        agreement_given=np.where(contradicted, 0.4, 0.9),
        flagged=~contradicted,
    )
    assert any(SPARED in note for note in notes) is expected


@pytest.mark.parametrize("change", ["agreed", "flagged", "unpredicted"])
def test_classes_with_another_note_are_not_repeated(found, change):
    contradicted = np.arange(600) < 60
    notes = notes_of(
        found,
        given=np.where(contradicted, 4, 0),
        agreement_given=np.where(contradicted, 0.5 if change == "agreed" else 0.4, 0.9),
        flagged=~contradicted | ((change == "flagged") & (np.arange(600) == 0)),
        unpredicted=(4,) if change == "unpredicted" else (),
        never_predicted=(4,) if change == "unpredicted" else (),
    )
    assert not any(SPARED in note for note in notes)


def test_a_single_label_that_was_not_audited_is_singular(found):
    given = np.where(np.arange(600) == 0, 4, 0)
    for never, words in (
        ((4,), "and is ranked last"),
        ((), "the only label of this class is ranked by"),
    ):
        notes = notes_of(found, given=given, unpredicted=(4,), never_predicted=never)
        assert any(words in note for note in notes)


NOTHING = "nothing can be concluded about wrong labels"


def fitted_rows(*, late=0.0, samples=1000):
    """Votes for labels made by a rule, fitted at once except for a share of `late` ones."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 4, samples)
    given = np.where(generator.random(samples) < 0.5, 0, truth)
    given[: samples // 20] = (truth[: samples // 20] + 1) % 4
    doubt = generator.random((4, 1, samples)) < 0.2 * 0.3 ** np.arange(20)[:, np.newaxis]
    votes = np.where(doubt, truth, given)
    memorised = (np.arange(samples) < late * samples) & (np.arange(20) < 12)[:, np.newaxis]
    votes = np.where(memorised, truth, votes)
    return ArrayReader(votes.astype(np.uint8), SampleInfo(samples, 4, "train", truth, given))


@pytest.mark.parametrize(("late", "noted"), [(0.0, True), (0.05, False)])
def test_nothing_is_concluded_from_labels_that_are_fitted_at_once(late, noted):
    found = audit(fitted_rows(late=late))
    assert found.noise_rate < 0.1  # of 40 %
    assert [note.startswith(NOTHING) for note in found.notes] == [True] * noted
    assert not any("more reliable" in note for note in found.notes)
    assert found.proposals_doubtful


def test_probabilities_rank_labels_that_are_fitted_at_once():
    rows = fitted_rows()
    votes = rows.read_labels(range(4), range(20), slice(None))
    wrong = rows.sample_info.given != rows.truth()
    sure = np.where(wrong, 0.7, 0.9)[:, np.newaxis] * np.eye(4)[votes]
    table = (sure + (1 - sure.sum(axis=-1, keepdims=True)) / 4).astype(np.float16)
    before, found = (
        audit(ArrayReader(votes, rows.sample_info, probabilities=one)) for one in (None, table)
    )
    assert found.score.auroc > 0.98 > 0.9 > before.score.auroc
    np.testing.assert_array_equal(found.flagged, before.flagged)
    np.testing.assert_array_equal(found.flagged, found.suspicion > 0.5)
    np.testing.assert_array_equal(found.proposed, before.proposed)


def test_probabilities_do_not_rank_labels_that_are_memorised_late(found):
    rows = memorised_rows()
    votes = rows.read_labels(range(4), range(12), slice(None))
    table = np.random.default_rng(0).dirichlet(np.ones(5), votes.shape).astype(np.float16)
    other = audit(ArrayReader(votes, rows.sample_info, probabilities=table))
    np.testing.assert_array_equal(other.suspicion, found.suspicion)


def test_few_wrong_labels_that_are_memorised_late_have_no_note():
    assert audit(memorised_rows(rate=0.04, samples=2000)).notes == ()


def settled_rows(*, wobble, hard=0.3, samples=2000):
    """Votes of networks that share errors on `hard` samples, and never fit their labels."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 5, samples)
    shared = np.where(generator.random(samples) < hard, (truth + 1) % 5, truth)
    strange = generator.integers(0, 5, (4, 20, samples))
    votes = np.where(generator.random((4, 20, samples)) < wobble, strange, shared)
    return ArrayReader(votes.astype(np.uint8), SampleInfo(samples, 5, "train", given=truth))


@pytest.mark.parametrize(("wobble", "noted"), [(0.04, True), (0.3, False)])
def test_networks_that_settle_without_fitting_the_labels_have_a_note(wobble, noted):
    rows = settled_rows(wobble=wobble)
    found = audit(rows)
    assert found.noise_rate > 0.25  # where no label is wrong
    assert found.too_hard is noted
    assert any(note.startswith("the networks have settled, and") for note in found.notes) is noted


def test_networks_that_fit_most_labels_have_not_settled_too_early():
    found = audit(settled_rows(wobble=0.04, hard=0.05))
    assert found.final_agreement > 0.9
    assert not found.too_hard


class CrossFitted(ArrayReader):
    def networks_info(self):
        return tuple(
            dataclasses.replace(one, metadata={"cross_fit": 5}) for one in super().networks_info()
        )


def cross_fitted_rows(*, probabilities):
    """Votes that repeat half of the wrong labels, with probabilities that doubt them."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, 900)
    given = np.where(generator.random(900) < 0.3, (truth + 1) % 3, truth)
    repeated = generator.random(900) < 0.5
    seen = np.where(repeated, given, truth)
    noisy = generator.random((4, 6, 900)) < 0.1
    votes = np.where(noisy, generator.integers(0, 3, (4, 6, 900)), seen).astype(np.uint8)
    sure = np.where(given == truth, 0.9, 0.6)[:, np.newaxis] * np.eye(3)[votes]
    table = sure + (1 - sure.sum(axis=-1, keepdims=True)) / 3
    return CrossFitted(
        votes,
        SampleInfo(900, 3, "train", truth, given),
        probabilities=table.astype(np.float16) if probabilities else None,
    )


def test_labels_judged_by_other_networks_have_a_note():
    found = audit(cross_fitted_rows(probabilities=False))
    assert found.cross_fitted
    assert found.notes[0].startswith("networks that were not trained on a sample judge its label")
    assert "reliable" not in found.notes[0]


def test_probabilities_rank_labels_judged_by_other_networks():
    votes = audit(cross_fitted_rows(probabilities=False))
    found = audit(cross_fitted_rows(probabilities=True))
    assert found.score.auroc > 0.98 > votes.score.auroc
    assert found.noise_rate == votes.noise_rate
    np.testing.assert_allclose(np.sort(found.suspicion), np.sort(votes.suspicion), atol=1e-5)
    assert len(np.unique(found.suspicion)) == 900
    np.testing.assert_array_equal(found.flagged, found.proposed != found.given)


def test_probabilities_of_epochs_that_overfit_are_left_out():
    rows = cross_fitted_rows(probabilities=True)
    votes = rows.read_labels(range(4), range(6), slice(None))
    sure = rows.read_probabilities(range(4), range(6), slice(None)).copy()
    sure[:, 3:] = np.eye(3)[(votes[:, 3:] + np.arange(900) % 2) % 3]
    overfit = CrossFitted(votes, rows.sample_info, probabilities=sure)
    few = CrossFitted(votes[:, :3], rows.sample_info, probabilities=sure[:, :3])
    found = audit(overfit)
    assert found.score.auroc > 0.98
    assert likeliest_epochs(Context(overfit), rows.sample_info.given) == [0, 1, 2]
    assert found.score.auroc == audit(few).score.auroc


def test_notes_on_networks_are_notes_of_the_audit():
    rows = memorised_rows()
    labels = rows.read_labels([0, 1, 1], range(12), slice(None))
    (note,) = audit(ArrayReader(labels, rows.sample_info)).notes
    assert note.startswith("networks 1 and 2 predict the same classes at every epoch")


def test_a_class_that_was_not_audited_has_a_note(record):
    labels = record.read_labels(range(4), range(12), slice(None))
    found = audit(ArrayReader(np.where(labels == 4, 0, labels), record.sample_info))
    mute = (record.sample_info.given == 4).sum()
    assert audit_notes(found, record.sample_info) == [
        f"no network ever predicts eel: the {mute} labels of this class could not be audited "
        "and are ranked last"
    ]
    assert audit_notes(audit(record), record.sample_info) == []


def test_one_informative_epoch_has_a_note(record):
    (note,) = audit_notes(audit(record.select(epochs=[4])), record.sample_info)
    assert note.startswith("only one epoch is informative: the ranking is more reliable, and")
    assert note.endswith("far too low. Record more epochs")
    notes = audit_notes(audit(record.select(epochs=[0, 4, 5])), record.sample_info)
    assert not any("one epoch" in note for note in notes)
