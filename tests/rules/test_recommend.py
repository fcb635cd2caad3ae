import numpy as np
import pytest
from voting import draw_rows

import accord
from accord.errors import ChoiceError
from accord.rules import _em as expectation
from accord.rules import _recommend as module
from accord.rules import find_rule
from accord.rules._overfitting import EarlyOverfitting
from accord.rules._recommend import (
    COPIES,
    Recommendation,
    directed_share,
    recommend,
    resolve_rule,
    standard_errors,
)
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


def agree_on(share, samples=1000):
    return np.arange(samples) < share * samples


@pytest.mark.usefixtures("no_fall_is_early")
@pytest.mark.parametrize("accuracies", [FALLEN, RISEN])
@pytest.mark.parametrize("networks", [2, 5])
def test_with_three_classes_networks_judge_each_other(accuracies, networks):
    chosen = recommend(draw_rows(networks=networks, accuracies=accuracies, classes=3))
    assert chosen.rule == "leave-one-out"
    assert chosen.reason == "the other networks show what each epoch's votes are worth"
    assert chosen.directed is None
    assert chosen.agreement == {}


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


def test_of_two_classes_mistakes_that_go_one_way_call_for_annotators():
    generator = np.random.default_rng(0)
    truth = np.arange(1000) % 2
    missed = generator.random((4, 9, 1000)) < np.linspace(0.3, 0.2, 9)[:, None]
    one_way = ArrayReader(np.where(missed, 0, truth), SampleInfo(1000, 2))
    both_ways = ArrayReader(np.where(missed, 1 - truth, truth), SampleInfo(1000, 2))
    chosen = recommend(one_way)
    assert chosen.rule == "dawid-skene"
    assert f"{100 * chosen.directed:.0f} % of the last mistakes go one way" in chosen.reason
    assert recommend(both_ways).directed < 0.1


@pytest.mark.parametrize(("directed", "rule"), [(0.29, "max-agreement"), (0.3, "dawid-skene")])
def test_three_in_ten_directed_mistakes_are_enough(monkeypatch, directed, rule):
    monkeypatch.setattr(module, "directed_share", lambda mistakes: directed)
    chosen = recommend(draw_rows(networks=3, classes=2, accuracies=RISEN))
    assert (chosen.rule, chosen.directed) == (rule, directed)
    assert ("30 % of the last mistakes go one way" in chosen.reason) is (directed == 0.3)


@pytest.mark.parametrize(
    ("more", "fewer", "rule"),
    [
        (9, 0, "dawid-skene"),  # 9 / √9 = 3
        (8, 0, "max-agreement"),  # 8 / √8 = 2.83
        (18, 4, "max-agreement"),  # 14 / √22 = 2.98
        (0, 9, "max-agreement"),
    ],
)
def test_of_two_classes_annotators_must_surely_leave_less_in_dispute(
    monkeypatch, more, fewer, rule
):
    agreed = {"max-agreement": agree_on(0.9), "dawid-skene": agree_on(0.9 + more / 1000)}
    agreed["dawid-skene"][:fewer] = False
    monkeypatch.setattr(module, "_halves_agree", lambda rule, context: agreed[rule.name])
    chosen = recommend(draw_rows(classes=2, accuracies=RISEN))
    endings = {
        "max-agreement": "with two classes no other rule is shown to be better by the votes",
        "dawid-skene": "on 90.9 % of the samples, 3.0 standard errors more than by max-agreement",
    }
    assert chosen.rule == rule
    assert chosen.reason.endswith(endings[rule])
    assert dict(chosen.agreement) == {name: same.mean() for name, same in agreed.items()}


@pytest.mark.usefixtures("no_fall_is_early")
@pytest.mark.parametrize("accuracies", [FALLEN, RISEN])
@pytest.mark.parametrize("networks", [2, 3, 5])
def test_of_two_classes_max_agreement_is_recommended_fallen_or_not(networks, accuracies):
    chosen = recommend(draw_rows(networks=networks, accuracies=accuracies, classes=2, seed=1))
    assert chosen.rule == "max-agreement"
    assert chosen.directed is not None
    assert ("dawid-skene" in chosen.agreement) == (networks == 5)


def test_standard_errors_count_only_where_two_differ():
    same = np.ones(100, bool)
    assert standard_errors(same, same) == 0
    ours, theirs = agree_on(0.9, 100), agree_on(0.8, 100)
    assert standard_errors(ours, theirs) == pytest.approx(10 / np.sqrt(10))
    assert standard_errors(theirs, ours) == -standard_errors(ours, theirs)
    assert standard_errors(ours, ours[::-1]) == 0


def test_directed_share_is_what_goes_one_way_less_what_chance_would():
    assert directed_share(np.zeros((3, 3))) == 0
    assert directed_share(np.diag([5.0, 5.0])) == 0
    one_way = np.array([[9.0, 200.0], [0.0, 9.0]])
    assert directed_share(one_way) == pytest.approx(1 - np.sqrt(400 / np.pi) / 200)
    assert directed_share(one_way.T) == directed_share(one_way)
    assert directed_share(one_way + one_way.T) == pytest.approx(-np.sqrt(800 / np.pi) / 400)
    assert directed_share(np.array([[0, 0.5], [0, 0]])) == 0  # half a sample shows nothing


def test_annotators_that_cannot_be_fitted_do_not_count(monkeypatch):
    monkeypatch.setattr(expectation, "MAX_ROUNDS", 1)
    chosen = recommend(draw_rows(accuracies=(0.5,) * 6, turns=1, classes=2))
    assert chosen.directed is None
    assert chosen.rule == "max-agreement"
    assert chosen.agreement == {}


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
    assert recommend(rows) == Recommendation("max-agreement", COPIES)


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
