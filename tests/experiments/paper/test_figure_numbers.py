"""The numbers of the paper's figures, and the settings that each figure needs."""

import json
import math

import numpy as np
import pytest
from erring_records import make_record, make_setting

from accord._record import Record
from accord.errors import ChoiceError, RecordError, RecordMismatch, TruthMissing
from accord.experiments.paper._figure_numbers import (
    MOST_PIXELS,
    NEEDS,
    Setting,
    check_settings,
    figure_numbers,
    picture_of,
)

BY_NETWORKS = sorted(number for number, needs in NEEDS.items() if needs.networks > 1)
BY_EPOCHS = sorted(number for number, needs in NEEDS.items() if needs.epochs > 1)


@pytest.fixture(scope="module")
def setting():
    return make_setting()


@pytest.fixture(scope="module")
def record():
    return make_record(3, 8, 120, 4)


def setting_of(*shape, **options):
    """Return a setting with everything that figures need, if its record has it."""
    record = make_record(*(shape or (3, 4, 60, 4)), **options)
    return Setting("noisy", record, clean=make_record(3, 4, 60, 4), samples_per_class=10)


@pytest.mark.parametrize("number", NEEDS)
def test_complete_settings_are_accepted(number):
    check_settings(number, [setting_of()])


@pytest.mark.parametrize("number", NEEDS)
def test_record_without_truth_raises(number):
    with pytest.raises(TruthMissing, match=r"runs/mine: the record has no true labels"):
        check_settings(number, [setting_of(3, 4, 60, 4, truth=False)])


@pytest.mark.parametrize("number", BY_NETWORKS)
def test_too_few_networks_raise(number):
    least = NEEDS[number].networks
    with pytest.raises(RecordError, match=rf"mine: figure {number} needs at least {least} net.*1"):
        check_settings(number, [setting_of(1, 4, 60, 4)])
    check_settings(number, [setting_of(least, 4, 60, 4)])


@pytest.mark.parametrize("number", BY_EPOCHS)
def test_single_epoch_raises(number):
    with pytest.raises(RecordError, match=rf"figure {number} needs at least 2 epochs.*holds 1"):
        check_settings(number, [setting_of(3, 1, 60, 4)])
    check_settings(number, [setting_of(3, 2, 60, 4)])


def test_figures_that_need_several_networks_or_epochs():
    assert BY_NETWORKS == [1, 2, 3, 5, 6, 8, 10]
    assert BY_EPOCHS == [1, 3, 4, 5, 6, 7, 8, 10]
    assert NEEDS[1].networks == 3


@pytest.mark.parametrize("number", [0, 9, 11])
def test_figure_without_records_raises_with_the_known_figures(number):
    with pytest.raises(ChoiceError, match=rf"no figure {number} .*There are: 1, 2, .*8, 10"):
        check_settings(number, [setting_of()])


def test_no_setting_raises():
    with pytest.raises(ChoiceError, match="figure 2 needs at least one setting; got none"):
        check_settings(2, [])


def test_figure_1_shows_one_setting():
    with pytest.raises(ChoiceError, match="figure 1 shows one setting; got 2"):
        check_settings(1, [setting_of(), setting_of()])


def test_figure_3_needs_the_clean_run_and_figure_5_does_not(record):
    check_settings(5, [Setting("noisy", record)])
    with pytest.raises(ChoiceError, match=r"noisy: figure 3 .* Setting\(…, clean=record\)"):
        check_settings(3, [Setting("noisy", record)])


def test_one_clean_network_suffices_for_figure_5_but_not_for_figure_3():
    one = Setting("noisy", make_record(3, 4, 60, 4), clean=make_record(1, 4, 60, 4))
    check_settings(5, [one])
    with pytest.raises(RecordError, match="figure 3 needs at least 2 networks"):
        check_settings(3, [one])


def test_clean_run_on_other_samples_raises():
    other = make_record(3, 4, 50, 4, name="runs/clean")
    with pytest.raises(RecordMismatch, match=r"runs/clean: .* its 50 samples .* of runs/mine"):
        check_settings(5, [Setting("noisy", make_record(3, 4, 60, 4), clean=other)])


@pytest.mark.parametrize("size", [None, 0])
def test_figure_8_needs_the_samples_per_class(record, size):
    with pytest.raises(ChoiceError, match=rf"noisy: figure 8 needs .*got {size}\. Give it"):
        check_settings(8, [Setting("noisy", record, samples_per_class=size)])


def test_figure_8_takes_one_record_per_number_of_samples(record):
    ten = Setting("clean", record, samples_per_class=10)
    check_settings(8, [ten, Setting("another", record, samples_per_class=10)])
    with pytest.raises(ChoiceError, match=r"clean: figure 8 takes one record.*two for 10"):
        check_settings(8, [ten, ten])


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


def test_panels_keep_the_order_of_settings(setting, noisy):
    assert figure_numbers(2, setting) == figure_numbers(2, [setting])
    panels = figure_numbers(2, [Setting("b", noisy), Setting("a", noisy)])["panels"]
    assert [one["name"] for one in panels] == ["b", "a"]


def test_panel_holds_the_size_of_its_record(setting):
    found = panel(4, setting)
    assert (found["networks"], found["epochs"], found["samples"]) == (5, 8, 120)


def test_figure_1_shows_the_typical_rescued_sample_of_three_networks(setting, noisy):
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


def test_figure_1_names_only_the_classes_it_shows(setting):
    found = panel(1, setting)
    shown = {found["truth"], *np.ravel(found["predicted"]).tolist()}
    assert found["class_names"] == {str(c): ("ant", "bee", "cat", "dog")[c] for c in sorted(shown)}
    nameless = panel(1, Setting("mine", make_record(3, 8, 120, 4)))
    assert set(nameless["class_names"].values()) <= {f"class {c}" for c in range(4)}
    assert nameless["picture"] is None


def test_figure_1_of_a_record_without_errors_raises():
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
def test_figures_5_and_10_show_max_agreement_with_or_without_the_clean_run(setting, number, noisy):
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


def test_figure_6_goes_up_to_fifteen_networks():
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


def test_figure_8_orders_sizes_and_groups_settings_by_name(noisy, clean):
    backwards = make_record(5, 8, 120, 4, wrong=0.9).reader.select(epochs=range(7, -1, -1))
    improving = Record(backwards)
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


# Pictures.


def test_no_pictures_give_none():
    assert picture_of(None, 0, samples=4) is None


def test_colour_bytes_are_unchanged():
    pictures = np.arange(2 * 2 * 3 * 3, dtype=np.uint8).reshape(2, 2, 3, 3)
    assert picture_of(pictures, 1, samples=2) == pictures[1].tolist()


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 2, 2, 1)])
def test_grey_is_repeated_for_all_colours(shape):
    pictures = np.array([0, 0, 0, 0, 0, 64, 128, 255], np.uint8).reshape(shape)
    greys = [[[0] * 3, [64] * 3], [[128] * 3, [255] * 3]]
    assert picture_of(pictures, 1, samples=2) == greys


def test_fractions_become_bytes():
    assert picture_of(np.array([[[0.0, 0.5, 1.0]]]), 0, samples=1) == [
        [[0] * 3, [128] * 3, [255] * 3]
    ]


@pytest.mark.parametrize(("side", "left"), [(MOST_PIXELS, 64), (MOST_PIXELS + 1, 33), (224, 56)])
def test_large_pictures_are_subsampled_not_cropped(side, left):
    ramp = np.linspace(0, 1, side)
    (row, *_) = rows = picture_of(np.broadcast_to(ramp, (1, side, side)), 0, samples=1)
    assert len(row) == len(rows) == left
    assert row[-1][0] >= 245


@pytest.mark.parametrize("shape", [(5, 8, 8), (4, 8), (4, 3, 8, 8), (4, 8, 0), (4, 8, 8, 3, 1)])
def test_wrong_shape_of_pictures_raises(shape):
    with pytest.raises(ChoiceError, match=r"shape \(4, height, width\).*got \(.*colour axis"):
        picture_of(np.zeros(shape), 0, samples=4)


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_standardised_pictures_raise(value):
    with pytest.raises(ChoiceError, match=r"float64 must lie in 0\.\.1; got .*standardised"):
        picture_of(np.full((1, 2, 2), value), 0, samples=1)


def test_integers_above_255_raise():
    with pytest.raises(ChoiceError, match=r"must lie in 0\.\.255; got 256\.\.256"):
        picture_of(np.full((1, 2, 2), 256), 0, samples=1)
