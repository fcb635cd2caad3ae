"""Every kind of noise is found by its name."""

import numpy as np
import pytest

from accord.data import NOISES, add_noise
from accord.data import noise as functions
from accord.errors import ChoiceError, PredictionError

LABELS = np.arange(100).repeat(3)
SAMPLES = np.random.default_rng(0).standard_normal((300, 4))


@pytest.fixture
def options(tmp_path):
    """Return the options that a kind takes, for 100 classes."""
    np.save(tmp_path / "labels.npy", LABELS[::-1])
    every = {
        "rate": 0.4,
        "mapping": (*range(1, 100), 0),
        "path": str(tmp_path / "labels.npy"),
        "samples": SAMPLES,
    }
    return lambda kind: {name: every[name] for name in NOISES[kind].options}


@pytest.mark.parametrize("kind", NOISES)
def test_every_kind_returns_a_copy_that_depends_on_the_seed_alone(kind, options):
    noisy, again = (add_noise(kind, LABELS, classes=100, seed=5, **options(kind)) for _ in range(2))
    assert (kind == "none") == np.array_equal(noisy, LABELS)
    assert noisy.dtype == LABELS.dtype
    assert not np.shares_memory(noisy, LABELS)
    np.testing.assert_array_equal(noisy, again)


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "patrini", "superclass"])
def test_names_lead_to_the_functions(kind):
    make = getattr(functions, f"{kind}_noise")
    np.testing.assert_array_equal(
        add_noise(kind, LABELS, rate=0.3, classes=100, seed=1),
        make(LABELS, rate=0.3, classes=100, seed=1),
    )


def test_asymmetric_noise_may_have_a_mapping():
    noisy = add_noise("asymmetric", np.array([0, 1]), rate=1, classes=3, seed=0, mapping=[2, 0, 1])
    assert noisy.tolist() == [2, 0]


def test_samples_are_ignored_by_kinds_that_take_none():
    wanted = add_noise("symmetric", LABELS, rate=0.3, classes=100, seed=1)
    found = add_noise("symmetric", LABELS, rate=0.3, classes=100, seed=1, samples=SAMPLES)
    np.testing.assert_array_equal(found, wanted)


def test_the_error_for_an_unknown_kind_suggests_the_nearest():
    with pytest.raises(ChoiceError, match=r"no noise is called 'asymetric'.*'asymmetric'"):
        add_noise("asymetric", LABELS, rate=0.1, classes=100, seed=0)
    with pytest.raises(ChoiceError, match=r"'loud'. There are: none, symmetric"):
        add_noise("loud", LABELS, classes=100, seed=0)


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("symmetric", "rate"), ("map", "rate and mapping"), ("instance", "rate and samples"),
     ("file", "path")],
)  # fmt: skip
def test_a_missing_option_is_named(kind, missing):
    with pytest.raises(ChoiceError, match=f"{kind} noise needs {missing}"):
        add_noise(kind, LABELS, classes=100, seed=0)


def test_an_option_of_another_kind_is_refused():
    with pytest.raises(ChoiceError, match="symmetric noise has no option 'path'"):
        add_noise("symmetric", LABELS, rate=0.1, classes=100, seed=0, path="x")
    with pytest.raises(ChoiceError, match="none noise has no option 'rate'"):
        add_noise("none", LABELS, rate=0.4, classes=100, seed=0)


@pytest.mark.parametrize("kind", NOISES)
def test_labels_out_of_range_are_refused(kind, options):
    given = {**options(kind), "samples": SAMPLES[:2]}
    with pytest.raises(PredictionError, match=r"0\.\.99 for 100 classes; got 0\.\.100"):
        add_noise(kind, np.array([0, 100]), classes=100, seed=0, **given)
