"""Settings that a figure cannot be drawn from are refused, with what is missing."""

import pytest

from accord.errors import ChoiceError, RecordError, RecordMismatch, TruthMissing
from accord.experiments.paper._figure_numbers import NEEDS, Setting, check_settings

BY_NETWORKS = sorted(number for number, needs in NEEDS.items() if needs.networks > 1)
BY_EPOCHS = sorted(number for number, needs in NEEDS.items() if needs.epochs > 1)


@pytest.fixture
def make_setting(make_record):
    """Build a setting that every figure accepts, but for what the record lacks."""

    def build(*shape, **options):
        record = make_record(*(shape or (3, 4, 60, 4)), **options)
        return Setting("noisy", record, clean=make_record(3, 4, 60, 4), samples_per_class=10)

    return build


@pytest.mark.parametrize("number", NEEDS)
def test_all_that_a_figure_needs_is_enough(make_setting, number):
    check_settings(number, [make_setting()])


@pytest.mark.parametrize("number", NEEDS)
def test_a_record_without_truth_is_refused(make_setting, number):
    with pytest.raises(TruthMissing, match=r"runs/mine: no true labels"):
        check_settings(number, [make_setting(3, 4, 60, 4, truth=False)])


@pytest.mark.parametrize("number", BY_NETWORKS)
def test_too_few_networks_are_refused(make_setting, number):
    least = NEEDS[number].networks
    with pytest.raises(RecordError, match=rf"mine: figure {number} needs at least {least} net.*1"):
        check_settings(number, [make_setting(1, 4, 60, 4)])
    check_settings(number, [make_setting(least, 4, 60, 4)])


@pytest.mark.parametrize("number", BY_EPOCHS)
def test_a_single_epoch_is_refused(make_setting, number):
    with pytest.raises(RecordError, match=rf"figure {number} needs at least 2 epochs.*holds 1"):
        check_settings(number, [make_setting(3, 1, 60, 4)])
    check_settings(number, [make_setting(3, 2, 60, 4)])


def test_figures_of_one_network_or_epoch_alone_are_told_apart():
    assert BY_NETWORKS == [1, 2, 3, 5, 6, 8, 10]
    assert BY_EPOCHS == [1, 3, 4, 5, 6, 7, 8, 10]
    assert NEEDS[1].networks == 3


@pytest.mark.parametrize("number", [0, 9, 11])
def test_a_figure_without_records_is_refused_with_those_there_are(make_setting, number):
    with pytest.raises(ChoiceError, match=rf"no figure {number} .*There are: 1, 2, .*8, 10"):
        check_settings(number, [make_setting()])


def test_no_setting_is_refused():
    with pytest.raises(ChoiceError, match="figure 2 needs at least one setting; got none"):
        check_settings(2, [])


def test_the_illustration_shows_one_setting(make_setting):
    with pytest.raises(ChoiceError, match="figure 1 shows one setting; got 2"):
        check_settings(1, [make_setting(), make_setting()])


def test_figure_3_asks_for_the_clean_run_and_figure_5_does_not(record):
    check_settings(5, [Setting("noisy", record)])
    with pytest.raises(ChoiceError, match=r"noisy: figure 3 .* Setting\(…, clean=record\)"):
        check_settings(3, [Setting("noisy", record)])


def test_one_clean_network_is_an_oracle_but_no_ensemble(make_record):
    one = Setting("noisy", make_record(3, 4, 60, 4), clean=make_record(1, 4, 60, 4))
    check_settings(5, [one])
    with pytest.raises(RecordError, match="figure 3 needs at least 2 networks"):
        check_settings(3, [one])


def test_a_clean_run_on_other_samples_is_refused(make_record):
    other = make_record(3, 4, 50, 4, name="runs/clean")
    with pytest.raises(RecordMismatch, match=r"runs/clean: .* its 50 samples .* of runs/mine"):
        check_settings(5, [Setting("noisy", make_record(3, 4, 60, 4), clean=other)])


@pytest.mark.parametrize("size", [None, 0])
def test_figure_8_asks_for_the_samples_per_class(record, size):
    with pytest.raises(ChoiceError, match=rf"noisy: figure 8 needs .*got {size}\. Give it"):
        check_settings(8, [Setting("noisy", record, samples_per_class=size)])


def test_figure_8_takes_one_record_for_each_number_of_samples(record):
    ten = Setting("clean", record, samples_per_class=10)
    check_settings(8, [ten, Setting("another", record, samples_per_class=10)])
    with pytest.raises(ChoiceError, match=r"clean: figure 8 takes one record.*two for 10"):
        check_settings(8, [ten, ten])
