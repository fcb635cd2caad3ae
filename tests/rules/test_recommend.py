import numpy as np
import pytest
from voting import draw_late_starts, draw_restarts, draw_rows

import accord
from accord.errors import ChoiceError
from accord.rules import _recommend as module
from accord.rules import epochs_before_overfitting, find_rule
from accord.rules._overfitting import EarlyOverfitting
from accord.rules._recommend import Recommendation, recommend, resolve_rule
from accord.rules.dawid_skene import DawidSkene
from accord.store import ArrayReader, SampleInfo


@pytest.fixture
def no_fall_is_early(monkeypatch):
    """An early fall of agreement would decide before the rest is measured."""
    monkeypatch.setattr(module, "find_early_overfitting", lambda rows: None)


FALLEN = (0.9,) * 3 + (0.7,) * 6  # accuracies, and so the agreement between networks
RISEN = FALLEN[::-1]


def labels_of(rows):
    return rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))


def overfitted(*, last=0.62, classes=10, samples=600, epochs=24):
    """Draw votes that become memorised ones early: each network repeats its own wrong votes."""
    generator = np.random.default_rng(0)
    truth = np.arange(samples) % classes
    wrong = (truth + generator.integers(1, classes, (5, 1, samples))) % classes
    accuracies = np.array([0.6, 0.8, *[0.95] * 5, *np.linspace(0.9, 0.6, 5), *[last] * 12])
    right = generator.random((5, 1, samples)) < accuracies[:epochs, None]
    return ArrayReader(np.where(right, truth, wrong), SampleInfo(samples, classes, truth=truth))


@pytest.mark.usefixtures("no_fall_is_early")
@pytest.mark.parametrize("accuracies", [FALLEN, RISEN])
@pytest.mark.parametrize("networks", [2, 5])
def test_with_three_classes_networks_judge_each_other(accuracies, networks):
    chosen = recommend(draw_rows(networks=networks, accuracies=accuracies, classes=3))
    assert chosen.rule == "leave-one-out"
    assert chosen.reason == "the other networks show what each epoch's votes are worth"


@pytest.mark.parametrize("classes", [2, 10])
def test_epochs_after_an_early_fall_are_left_out(classes):
    chosen = recommend(overfitted(classes=classes))
    assert chosen.rule == "before-overfit"
    assert chosen.reason.startswith("networks overfit, and agreed best in the first ")
    assert chosen.reason.endswith(" of 24 epochs")


def test_epochs_after_a_fall_that_networks_recovered_from_count():
    recovered = overfitted(last=1.0)
    assert find_rule("before-overfit")(recovered).note  # there is a fall
    assert recommend(recovered).rule == "leave-one-out"


def test_a_fall_that_spoils_nothing_has_no_effect(monkeypatch):
    changing = EarlyOverfitting(before=6, spoils=False)
    monkeypatch.setattr(module, "find_early_overfitting", lambda rows: changing)
    assert recommend(draw_rows(networks=5, accuracies=FALLEN)).rule == "leave-one-out"


def test_a_fall_is_not_looked_for_where_annotators_take_too_much_room(monkeypatch):
    monkeypatch.setattr(module, "fits_in_memory", lambda rows: False)
    assert recommend(overfitted()).rule == "leave-one-out"


@pytest.mark.parametrize(("samples", "rule"), [(99, "max-agreement"), (100, "leave-one-out")])
def test_few_samples_show_nothing_but_a_fall(samples, rule):
    assert recommend(draw_rows(samples=samples)).rule == rule
    assert recommend(overfitted(samples=samples)).rule == "before-overfit"


@pytest.mark.usefixtures("no_fall_is_early")
@pytest.mark.parametrize("accuracies", [FALLEN, RISEN])
@pytest.mark.parametrize("networks", [2, 3, 5])
def test_of_two_classes_max_agreement_is_recommended_fallen_or_not(networks, accuracies):
    chosen = recommend(draw_rows(networks=networks, accuracies=accuracies, classes=2, seed=1))
    assert chosen.rule == "max-agreement"
    assert chosen.reason == "with two classes any two wrong votes are the same"


@pytest.mark.parametrize(
    "rows", [draw_late_starts(), draw_restarts(at_chance=True), draw_restarts(at_chance=False)]
)
def test_full_agreement_on_one_class_is_no_peak_to_fall_from(rows):
    assert recommend(rows).rule == "leave-one-out"


@pytest.mark.parametrize(("peak", "falls"), [(0.5, False), (0.62, True)])
def test_first_epochs_that_predict_one_class_are_not_the_best_agreement(peak, falls):
    """Networks that agree little and keep changing are worth more than few of their epochs."""
    rows = draw_rows(networks=5, accuracies=(0.25,) * 6 + (peak,) * 4 + (0.5,) * 10)
    labels = labels_of(rows).copy()
    labels[:, :6] = 1
    rows = ArrayReader(labels, rows.sample_info)
    assert (epochs_before_overfitting(rows) is not None) == falls
    assert recommend(rows).rule == "leave-one-out"


@pytest.mark.parametrize("classes", [2, 4])
def test_the_truth_has_no_effect(classes):
    rows = draw_rows(accuracies=(0.9, 0.5, 0.4, 0.4), samples=400, classes=classes)
    truth = np.zeros(400, np.intp)
    for sample_info in (SampleInfo(400, classes), SampleInfo(400, classes, truth=truth)):
        assert recommend(ArrayReader(labels_of(rows), sample_info)) == recommend(rows)


def test_one_network_and_one_class_have_reasons_of_their_own():
    expected = Recommendation("max-agreement", "there is one network")
    assert recommend(draw_rows(networks=1)) == expected
    rows = ArrayReader(np.zeros((5, 4, 40), np.uint8), SampleInfo(40, 1))
    assert recommend(rows) == Recommendation("max-agreement", "there is one class")


def test_copies_of_one_network_do_not_judge_each_other():
    one = labels_of(draw_rows(networks=1, classes=3))
    rows = ArrayReader(np.repeat(one, 3, axis=0), SampleInfo(one.shape[2], 3))
    assert recommend(rows) == Recommendation(
        "max-agreement", "all networks predict the same classes"
    )


def test_of_many_samples_evenly_spaced_ones_are_looked_at(monkeypatch):
    rows = draw_rows(samples=1401, classes=2)
    some = ArrayReader(labels_of(rows)[:, :, ::8], SampleInfo(176, 2))
    expected = recommend(some)
    monkeypatch.setattr(module, "MAX_SAMPLES", 200)
    assert recommend(rows) == expected


def test_a_packed_record_can_be_looked_at_in_steps(monkeypatch):
    monkeypatch.setattr(module, "MAX_SAMPLES", 500)
    assert recommend(accord.open("example://cifar10-sym40").reader).rule == "leave-one-out"


def test_a_rule_is_resolved_by_its_name_and_the_recommended_one_by_the_votes():
    rows = draw_rows(networks=2, accuracies=FALLEN)
    assert resolve_rule("majority", rows) == (find_rule("majority"), "")
    mine = DawidSkene()
    assert resolve_rule(mine, rows) == (mine, "")
    found = recommend(rows)
    reason = f"recommended: {found.rule}, as {found.reason}"
    assert resolve_rule("recommended", rows) == (find_rule(found.rule), reason)
    with pytest.raises(ChoiceError, match=r"'recomended'\. Did you mean 'recommended'"):
        resolve_rule("recomended", rows)
