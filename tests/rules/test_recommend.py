import numpy as np
import pytest
from voting import draw_rows

import accord
from accord.analysis import network_agreement
from accord.errors import ChoiceError
from accord.rules import _em as expectation
from accord.rules import _recommend as module
from accord.rules import find_rule
from accord.rules._overfitting import EarlyOverfitting
from accord.rules._recommend import (
    Recommendation,
    choose,
    directed_share,
    recommend,
    resolve_rule,
    standard_errors,
)
from accord.rules.dawid_skene import DawidSkene
from accord.store import ArrayReader, SampleInfo


@pytest.fixture(autouse=True)
def no_fall_is_early(monkeypatch):
    """An early fall of agreement would decide before the rest is measured."""
    monkeypatch.setattr(module, "find_early_overfitting", lambda rows: None)


FALLEN = (0.9,) * 3 + (0.7,) * 6  # accuracies, and so the agreement between networks
RISEN = FALLEN[::-1]


def agree_on(share, samples=1000):
    return np.arange(samples) < share * samples


def choose_by(
    *, networks=4, classes=4, changing=False, directed=0.0, fall=0.5, repeats=0.5, agreed=None
):
    """Choose from measurements; by default halves agree on every sample."""

    def halves(rule):
        return agree_on(1) if agreed is None else agreed[rule.name]

    return choose(
        networks=networks,
        classes=classes,
        changing=changing,
        directed=directed,
        fall=lambda: fall,
        repeats=lambda: repeats,
        halves=halves,
    )


def test_after_a_fall_weighted_agreement_is_recommended():
    rows = draw_rows(networks=5, accuracies=(0.9, 0.5, 0.5) + (0.4,) * 6, classes=4)
    chosen = recommend(rows)
    assert chosen.rule == "weighted-agreement"  # the errors follow no system
    assert chosen.agreement == {}
    assert chosen.reason == "the networks' agreement shows which epochs are good"


def test_epochs_after_an_early_fall_are_left_out(monkeypatch):
    spoilt = EarlyOverfitting(before=6, spoils=True)
    monkeypatch.setattr(module, "find_early_overfitting", lambda rows: spoilt)
    chosen = recommend(draw_rows(networks=5, accuracies=FALLEN[:8]))
    assert chosen.rule == "before-overfit"
    assert chosen.reason.endswith("agreed best in the first 6 of 8 epochs")


def test_a_fall_is_not_looked_for_where_annotators_take_too_much_room(monkeypatch):
    spoilt = EarlyOverfitting(before=1, spoils=True)
    monkeypatch.setattr(module, "find_early_overfitting", lambda rows: spoilt)
    monkeypatch.setattr(module, "fits_in_memory", lambda rows: False)
    assert recommend(draw_rows(networks=5, accuracies=FALLEN)).rule != "before-overfit"


def test_votes_that_are_poor_and_keep_changing_are_all_counted(monkeypatch):
    changing = EarlyOverfitting(before=6, spoils=False)
    monkeypatch.setattr(module, "find_early_overfitting", lambda rows: changing)
    chosen = recommend(draw_rows(networks=5, accuracies=FALLEN))
    assert chosen.rule == "max-agreement"
    assert chosen.reason.startswith("networks overfit, but agree little and keep changing")
    assert choose_by(changing=True, directed=0.5).rule == "dawid-skene"
    assert choose_by(changing=True, fall=0.0).rule == "max-agreement"


def test_without_a_fall_annotators_are_recommended():
    rows = draw_rows(networks=5, accuracies=RISEN)
    chosen = recommend(rows)
    assert chosen.rule == "dawid-skene"
    assert chosen.reason == "the agreement between networks has not fallen"
    assert chosen.agreement == {}
    assert chosen.fall < 0.01
    assert recommend(rows.select(networks=[0, 1])).rule == "dawid-skene"


@pytest.mark.parametrize(("fall", "rule"), [(0.0099, "dawid-skene"), (0.01, "weighted-agreement")])
def test_a_fall_of_one_point_is_enough(fall, rule):
    chosen = choose_by(fall=fall)
    assert (chosen.rule, chosen.fall) == (rule, fall)


def test_a_fall_does_not_matter_without_annotators():
    assert choose_by(fall=0.0, directed=None).rule == "weighted-agreement"


def test_the_fall_is_that_of_the_agreement_between_networks_beyond_chance():
    rows = draw_rows(accuracies=FALLEN)
    agreement = network_agreement(rows)
    fall = agreement[:2].mean() - agreement[3:8].mean()  # all classes are as frequent
    assert recommend(rows).fall == pytest.approx(fall, abs=0.005)
    assert recommend(rows.select(epochs=range(6))).fall == 0  # the peak is too recent


@pytest.mark.parametrize(("alike", "rule"), [(0.9, "dawid-skene"), (0.89, "weighted-agreement")])
def test_networks_that_repeat_themselves_call_for_annotators(alike, rule):
    chosen = choose_by(repeats=alike)
    assert chosen.rule == rule
    assert chosen.reason.startswith("networks repeat themselves at the end") is (alike == 0.9)
    assert choose_by(repeats=alike, directed=None).rule == "weighted-agreement"


def test_repetition_is_measured_in_the_last_half_of_the_training():
    changing = draw_rows(networks=5, accuracies=(0.9,) * 4 + (0.8,) * 4)
    labels = changing.read_labels(range(5), [0, 1, 2, 3, 4, 4, 4, 4, 4, 4], slice(None))
    rows = ArrayReader(labels, changing.sample_info)
    assert recommend(rows.select(epochs=range(9))).rule == "dawid-skene"
    assert recommend(changing).rule == "weighted-agreement"


def test_mistakes_that_go_one_way_call_for_annotators():
    rows = draw_rows(accuracies=(0.9,) * 3 + (0.6,) * 6, turns=0.9, samples=1000)
    chosen = recommend(rows)
    assert chosen.rule == "dawid-skene"
    assert chosen.directed > 0.5
    assert f"{100 * chosen.directed:.0f} % of the last mistakes go one way" in chosen.reason
    assert recommend(rows.select(networks=[0, 1])).rule == "dawid-skene"
    plain = draw_rows(accuracies=(0.9,) * 3 + (0.6,) * 6, samples=1000)
    assert recommend(plain).directed < 0.1


@pytest.mark.parametrize("directed", [0.29, 0.3])
@pytest.mark.parametrize(("classes", "else_"), [(2, "max-agreement"), (4, "weighted-agreement")])
def test_three_in_ten_directed_mistakes_are_enough(directed, classes, else_):
    chosen = choose_by(directed=directed, classes=classes)
    rule = "dawid-skene" if directed == 0.3 else else_
    assert (chosen.rule, chosen.directed) == (rule, directed)


def test_what_does_not_matter_is_not_measured():
    def fail(*_):
        raise AssertionError

    unmeasured = {"changing": False, "fall": fail, "repeats": fail, "halves": fail}
    assert choose(networks=4, classes=4, directed=0.5, **unmeasured).rule == "dawid-skene"
    assert choose(networks=3, classes=2, directed=0.0, **unmeasured).rule == "max-agreement"
    risen = choose(networks=4, classes=4, directed=0.0, **(unmeasured | {"fall": lambda: 0.0}))
    assert risen.rule == "dawid-skene"


@pytest.mark.parametrize(
    ("more", "fewer", "rule"),
    [
        (9, 0, "dawid-skene"),  # 9 / √9 = 3
        (8, 0, "max-agreement"),  # 8 / √8 = 2.83
        (18, 4, "max-agreement"),  # 14 / √22 = 2.98
        (0, 9, "max-agreement"),
    ],
)
def test_of_two_classes_annotators_must_surely_leave_less_in_dispute(more, fewer, rule):
    agreed = {"max-agreement": agree_on(0.9), "dawid-skene": agree_on(0.9 + more / 1000)}
    agreed["dawid-skene"][:fewer] = False
    chosen = choose_by(classes=2, agreed=agreed)
    endings = {
        "max-agreement": "with two classes no other rule is shown to be better by the votes",
        "dawid-skene": "on 90.9 % of the samples, 3.0 standard errors more than by max-agreement",
    }
    assert chosen.rule == rule
    assert chosen.reason.endswith(endings[rule])
    assert dict(chosen.agreement) == {name: same.mean() for name, same in agreed.items()}


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


def test_only_the_direction_of_mistakes_at_the_last_epoch_counts():
    early = draw_rows(accuracies=(0.6,) * 3, turns=1, samples=1000)
    late = draw_rows(accuracies=(0.6,) * 6, samples=1000, seed=1)
    parts = [some.read_labels(range(4), range(some.epochs), slice(None)) for some in (early, late)]
    rows = ArrayReader(np.concatenate(parts, axis=1), late.sample_info)
    assert recommend(rows).directed < 0.1
    backwards = rows.select(epochs=range(8, -1, -1))
    assert recommend(backwards).directed > 0.5


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
    for classes in (2, 4):
        chosen = recommend(draw_rows(accuracies=(0.5,) * 6, turns=1, classes=classes))
        assert chosen.directed is None
        assert chosen.rule != "dawid-skene"
        assert "dawid-skene" not in chosen.agreement


def test_the_truth_has_no_effect():
    rows = draw_rows(accuracies=(0.9, 0.5, 0.4, 0.4), samples=400)
    labels = rows.read_labels(range(4), range(4), slice(None))
    for sample_info in (SampleInfo(400, 4), SampleInfo(400, 4, truth=np.zeros(400, np.intp))):
        assert recommend(ArrayReader(labels, sample_info)) == recommend(rows)


@pytest.mark.parametrize(
    ("networks", "rule", "reason"),
    [
        (1, "max-agreement", "one network"),
        (2, "weighted-agreement", "shows which epochs"),
        (3, "weighted-agreement", "shows which epochs"),
    ],
)
def test_few_networks_leave_no_choice(networks, rule, reason):
    chosen = recommend(draw_rows(networks=networks, accuracies=FALLEN))
    assert chosen.rule == rule
    assert reason in chosen.reason
    assert chosen.agreement == {}
    assert networks == 1 or chosen.fall > 0.2


def test_one_class_has_its_own_reason():
    rows = ArrayReader(np.zeros((5, 4, 40), np.uint8), SampleInfo(40, 1))
    assert recommend(rows) == Recommendation("max-agreement", "there is one class")


def test_confusion_matrices_are_not_tried_on_few_samples_or_very_many_classes(monkeypatch):
    assert recommend(draw_rows(samples=40)).directed is not None
    few = recommend(draw_rows(samples=39))
    assert few.agreement == {}
    assert few.directed is None
    monkeypatch.setattr(module, "MAX_CLASSES", 3)
    assert recommend(draw_rows()).directed is None


@pytest.mark.parametrize("looked_at", [40, 600])  # of 40 samples, two epochs share matrices
def test_confusion_matrices_of_the_whole_record_must_fit_in_memory(monkeypatch, looked_at):
    rows = draw_rows(accuracies=(0.9,) * 8)
    monkeypatch.setattr(module, "MAX_SAMPLES", looked_at)
    monkeypatch.setattr(expectation, "MAX_CELLS", 4 * 8 * 4**2)
    assert recommend(rows).directed is not None
    monkeypatch.setattr(expectation, "MAX_CELLS", 4 * 8 * 4**2 - 1)
    assert recommend(rows).directed is None


def test_of_many_samples_evenly_spaced_ones_are_looked_at(monkeypatch):
    rows = draw_rows(samples=601)
    some = rows.read_labels(range(4), range(6), slice(None, None, 4))
    expected = recommend(ArrayReader(some, SampleInfo(some.shape[2], 4)))
    monkeypatch.setattr(module, "MAX_SAMPLES", 200)
    assert recommend(rows) == expected


def test_a_packed_record_can_be_looked_at_in_steps(monkeypatch):
    monkeypatch.setattr(module, "MAX_SAMPLES", 500)
    assert recommend(accord.open("example://cifar10-sym40").reader).rule != "max-agreement"


def test_a_rule_is_resolved_by_its_name_and_the_recommended_one_by_the_votes():
    rows = draw_rows(networks=2, accuracies=FALLEN)
    assert resolve_rule("majority", rows) == (find_rule("majority"), "")
    mine = DawidSkene()
    assert resolve_rule(mine, rows) == (mine, "")
    found = recommend(rows)
    reason = f"recommended: {found.rule}, as {found.reason}"
    assert resolve_rule("recommended", rows) == (find_rule(found.rule), reason)
    with pytest.raises(ChoiceError, match="no rule is called 'recomended'"):
        resolve_rule("recomended", rows)
