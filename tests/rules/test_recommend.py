import numpy as np
import pytest
from voting import draw_rows

import accord
from accord.errors import PredictionError
from accord.rules import find_rule
from accord.rules import recommend as module
from accord.rules.dawid_skene import DawidSkene
from accord.rules.recommend import directed_share, recommend
from accord.store import ArrayRows, Facts


def test_the_rule_is_recommended_on_whose_predictions_two_halves_agree_most():
    rows = draw_rows(networks=5, accuracies=(0.9, 0.5, 0.5, 0.4, 0.4, 0.4), classes=4)
    chosen = recommend(rows)
    expected = {}
    for rule in ("max-agreement", "weighted-agreement", "dawid-skene"):
        first = find_rule(rule)(rows.select(networks=[0, 2, 4])).labels
        second = find_rule(rule)(rows.select(networks=[1, 3])).labels
        expected[rule] = (first == second).mean()
    assert dict(chosen.agreement) == pytest.approx(expected)
    assert chosen.rule == "weighted-agreement"  # the errors follow no system
    assert f"{100 * expected[chosen.rule]:.1f} %" in chosen.reason


@pytest.mark.parametrize(
    ("plain", "weighted", "annotators", "rule"),
    [
        (0.90, 0.90, 0.90, "max-agreement"),
        (0.90, 0.91, 0.90, "weighted-agreement"),
        (0.91, 0.90, 0.92, "max-agreement"),  # 8 of 9 samples in dispute are left
        (0.90, 0.91, 0.93, "dawid-skene"),  # 7 of 9
        (0.93, 0.90, 0.95, "dawid-skene"),  # 5 of 7
        (0.93, 0.90, 0.94, "max-agreement"),  # 6 of 7
        (1.00, 1.00, 1.00, "max-agreement"),
    ],
)
def test_annotators_must_leave_clearly_less_in_dispute(
    monkeypatch, plain, weighted, annotators, rule
):
    agreed = {
        "max-agreement": plain,
        "weighted-agreement": weighted,
        "dawid-skene": annotators,
    }
    monkeypatch.setattr(module, "_halves_agree", lambda rule, rows: agreed[rule.name])
    assert recommend(draw_rows()).rule == rule


def test_equal_agreement_goes_to_the_simpler_rule():
    assert recommend(draw_rows(accuracies=(1.0,) * 5)).rule == "max-agreement"


def test_mistakes_that_go_one_way_call_for_annotators():
    rows = draw_rows(accuracies=(0.9,) * 3 + (0.6,) * 6, turns=0.9, samples=1000)
    chosen = recommend(rows)
    assert chosen.rule == "dawid-skene"
    assert chosen.directed > 0.5
    assert f"{100 * chosen.directed:.0f} % of the last mistakes go one way" in chosen.reason
    assert recommend(rows.select(networks=[0, 1])).rule == "dawid-skene"
    plain = draw_rows(accuracies=(0.9,) * 3 + (0.6,) * 6, samples=1000)
    assert recommend(plain).directed < 0.1


@pytest.mark.parametrize(("directed", "rule"), [(0.29, "max-agreement"), (0.3, "dawid-skene")])
def test_three_in_ten_directed_mistakes_are_enough(monkeypatch, directed, rule):
    monkeypatch.setattr(module, "_directed", lambda rows: directed)
    assert recommend(draw_rows(accuracies=(1.0,) * 5)).rule == rule


def test_only_mistakes_at_the_last_epoch_are_asked_for_their_direction():
    early = draw_rows(accuracies=(0.6,) * 3, turns=1, samples=1000)
    late = draw_rows(accuracies=(0.6,) * 6, samples=1000, seed=1)
    parts = [some.read_labels(range(4), range(some.epochs), slice(None)) for some in (early, late)]
    rows = ArrayRows(np.concatenate(parts, axis=1), late.facts)
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
    assert directed_share(np.array([[0, 0.5], [0, 0]])) == 0  # half a sample tells nothing


def test_annotators_that_cannot_be_fitted_have_no_say(monkeypatch):
    def fail(self, rows):
        raise PredictionError("collapsed")

    monkeypatch.setattr(DawidSkene, "fit", fail)
    assert recommend(draw_rows(turns=1)).directed == 0


def test_the_truth_has_no_say():
    rows = draw_rows(accuracies=(0.9, 0.5, 0.4, 0.4), samples=400)
    labels = rows.read_labels(range(4), range(4), slice(None))
    for facts in (Facts(400, 4), Facts(400, 4, truth=np.zeros(400, np.intp))):
        assert recommend(ArrayRows(labels, facts)) == recommend(rows)


@pytest.mark.parametrize(
    ("networks", "rule", "reason"),
    [
        (1, "max-agreement", "one network"),
        (2, "weighted-agreement", "2 networks"),
        (3, "weighted-agreement", "3 networks make no two halves"),
    ],
)
def test_few_networks_leave_no_choice(networks, rule, reason):
    chosen = recommend(draw_rows(networks=networks))
    assert chosen.rule == rule
    assert reason in chosen.reason
    assert chosen.agreement == {}


def test_confusion_matrices_are_not_tried_on_few_samples_or_very_many_classes(monkeypatch):
    assert "dawid-skene" in recommend(draw_rows(samples=40)).agreement
    few = recommend(draw_rows(samples=39))
    assert few.agreement.keys() == {"max-agreement", "weighted-agreement"}
    assert few.directed is None
    monkeypatch.setattr(module, "MOST_CLASSES", 3)
    assert "dawid-skene" not in recommend(draw_rows()).agreement


def test_of_many_samples_evenly_spaced_ones_are_looked_at(monkeypatch):
    rows = draw_rows(samples=601)
    some = rows.read_labels(range(4), range(6), slice(None, None, 4))
    expected = recommend(ArrayRows(some, Facts(some.shape[2], 4)))
    monkeypatch.setattr(module, "MOST_SAMPLES", 200)
    assert recommend(rows) == expected


def test_a_packed_record_can_be_looked_at_in_steps(monkeypatch):
    monkeypatch.setattr(module, "MOST_SAMPLES", 500)
    assert recommend(accord.open("example://cifar10-sym40").rows).rule != "max-agreement"
