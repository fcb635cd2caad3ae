"""What the figures show is what the record says, in a form that a JSON file holds."""

import json
import math

import numpy as np
import pytest

from accord.errors import RecordError
from accord.experiments.paper._figure_numbers import NEEDS, Setting, figure_numbers


@pytest.fixture
def noisy(setting):
    return setting.record


@pytest.fixture
def clean(setting):
    return setting.clean


def panel(number, *settings):
    (only,) = figure_numbers(number, settings)["panels"]
    return only


def accuracy(record, rule):
    (score,) = record.score([rule])
    return score.accuracy


@pytest.mark.parametrize("number", NEEDS)
def test_numbers_survive_a_json_file(setting, number):
    numbers = figure_numbers(number, setting)
    assert json.loads(json.dumps(numbers)) == numbers
    assert (numbers["figure"], numbers["title"]) == (number, NEEDS[number].title)


def test_one_setting_may_come_alone_and_several_keep_their_order(setting, noisy):
    assert figure_numbers(2, setting) == figure_numbers(2, [setting])
    panels = figure_numbers(2, [Setting("b", noisy), Setting("a", noisy)])["panels"]
    assert [one["name"] for one in panels] == ["b", "a"]


def test_a_panel_says_how_large_its_record_is(setting):
    found = panel(4, setting)
    assert (found["networks"], found["epochs"], found["samples"]) == (5, 8, 120)


def test_figure_1_tells_the_middle_sample_of_the_first_three_networks(setting, noisy):
    found, labels = panel(1, setting), noisy.labels[:3]
    assert found["numbers"] == [0, 1, 2]
    sample = found["sample"]
    assert found["predicted"] == labels[:, :, sample].tolist()
    assert found["truth"] == noisy.truth[sample]
    assert found["majority"][-1] != found["truth"] == found["max_agreement"][-1]
    assert len(found["majority"]) == len(found["max_agreement"]) == len(found["progress"]) == 8
    three = noisy.select(networks=[0, 1, 2])
    last, best = (three.predict(rule).labels for rule in ("majority", "max-agreement"))
    assert found["last_wrong"] == (last != noisy.truth).sum()
    clear = [(labels[:, -1, s] == last[s]).sum() == 2 for s in range(120)]
    assert found["rescued"] == (clear & (last != noisy.truth) & (best == noisy.truth)).sum()
    assert found["picture"][0][0] == [setting.pictures[sample, 0, 0]] * 3


def test_figure_1_names_the_classes_it_shows_and_no_others(setting, make_record):
    found = panel(1, setting)
    shown = {found["truth"], *np.ravel(found["predicted"]).tolist()}
    assert found["class_names"] == {str(c): ("ant", "bee", "cat", "dog")[c] for c in sorted(shown)}
    nameless = panel(1, Setting("mine", make_record(3, 8, 120, 4)))
    assert set(nameless["class_names"].values()) <= {f"class {c}" for c in range(4)}
    assert nameless["picture"] is None


def test_figure_1_of_a_record_that_never_errs_is_refused(make_record):
    with pytest.raises(RecordError, match=r"runs/mine: no sample has"):
        figure_numbers(1, Setting("mine", make_record(3, 4, 20, 3, wrong=0)))


def test_figure_2_counts_every_wrong_prediction_of_the_last_epoch(setting, noisy):
    counts = panel(2, setting)["wrong_predictions"]
    last = noisy.labels[:, -1]
    wrong = last != noisy.truth
    together = (last[:, None] == last[None]).sum(axis=1)
    assert counts == [int((wrong & (together == k)).sum()) for k in range(1, 6)]


def test_figure_3_compares_single_and_majority_on_noisy_and_clean_labels(setting, noisy, clean):
    curves = panel(3, setting)["curves"]
    assert list(curves) == ["single", "majority", "clean-single", "clean-majority"]
    for name, curve in curves.items():
        record = clean if name.startswith("clean") else noisy
        assert curve["progress"] == list(record.progress)
        assert curve["accuracy"][-1] == pytest.approx(accuracy(record, name.split("-")[-1]))
        assert len(curve["accuracy"]) == record.epochs


@pytest.mark.parametrize("number", [5, 10])
def test_figures_5_and_10_follow_max_agreement_with_or_without_an_oracle(setting, number, noisy):
    curves = panel(number, setting)["curves"]
    assert list(curves) == ["single", "majority", "max-agreement", "clean-single"]
    best = curves["max-agreement"]["accuracy"]
    early = noisy.select(epochs=slice(3))
    assert best[2] == pytest.approx(accuracy(early, "max-agreement"))
    plain = panel(number, Setting("mine", noisy))["curves"]
    assert list(plain) == ["single", "majority", "max-agreement"]


def test_figure_4_counts_samples_on_both_sides(setting, noisy):
    found = panel(4, setting)
    right = noisy.predict("majority").labels == noisy.truth
    margins = noisy.final_margin()
    assert (found["edges"][0], found["edges"][-1]) == (-1, 1)
    for side, chosen in (("right", right), ("wrong", ~right)):
        below = np.array(found["edges"][1:]) <= 0
        assert sum(found[side]) == chosen.sum()
        assert np.array(found[side])[below].sum() == (margins[chosen] < 0).sum()


def test_figure_6_takes_all_subsets_of_each_size(setting, noisy):
    found = panel(6, setting)
    assert found["sizes"] == [1, 2, 3, 4, 5]
    assert found["subsets"] == [math.comb(5, size) for size in found["sizes"]]
    for rule, sweep in found["rules"].items():
        alone = [accuracy(noisy.select(networks=[network]), rule) for network in range(5)]
        assert sweep["mean"][0] == pytest.approx(np.mean(alone))
        assert sweep["deviation"][0] == pytest.approx(np.std(alone))
        assert sweep["mean"][-1] == pytest.approx(accuracy(noisy, rule))
        assert sweep["deviation"][-1] == 0
    assert list(found["rules"]) == ["majority", "max-agreement"]


def test_figure_6_goes_up_to_fifteen_networks(make_record):
    found = panel(6, Setting("many", make_record(15, 3, 40, 3)))
    assert found["sizes"] == list(range(1, 16))
    assert found["subsets"] == [min(256, math.comb(15, size)) for size in range(1, 16)]


def test_figure_7_takes_equally_spaced_epochs(setting, noisy):
    found = panel(7, setting)
    assert found["sizes"] == [1, 2, 4, 8]
    chosen = noisy.select(epochs=[0, 2, 5, 7])
    assert found["max-agreement"][2] == pytest.approx(accuracy(chosen, "max-agreement"))
    assert found["max-agreement"][-1] == pytest.approx(accuracy(noisy, "max-agreement"))
    assert found["majority"] == pytest.approx(accuracy(noisy, "majority"))


def test_figure_8_orders_sizes_and_gathers_settings_of_one_name(make_record, noisy, clean):
    improving = make_record(5, 8, 120, 4, wrong=0.9).select(epochs=range(7, -1, -1))
    sizes = ((noisy, "b", 50), (improving, "a", 7), (clean, "b", 10))
    settings = [Setting(name, record, samples_per_class=size) for record, name, size in sizes]
    b, a = figure_numbers(8, settings)["panels"]
    assert (b["name"], a["name"]) == ("b", "a")
    assert (b["samples_per_class"], a["samples_per_class"]) == ([10, 50], [7])
    for found, place, record in ((b, 1, noisy), (a, 0, improving)):
        before, after = (
            record.predict(rule).labels == record.truth for rule in ("majority", "max-agreement")
        )
        assert found["turned_right"][place] == pytest.approx((~before & after).mean())
        assert found["turned_wrong"][place] == pytest.approx((before & ~after).mean())
    assert b["turned_right"][1] > 0 < a["turned_wrong"][0]
    assert b["samples"] == [120, 120]
    assert b["p_value"][1] == noisy.changes("majority", "max-agreement").p_value
