"""Every kind of noise is found by its name and built from its JSON."""

import json

import numpy as np
import pytest

from accord.data import NOISES, Noise, add_noise
from accord.data import noise as functions
from accord.errors import ChoiceError, PredictionError

LABELS = np.arange(100).repeat(3)
SAMPLES = np.random.default_rng(0).standard_normal((300, 4))


@pytest.fixture
def arguments(tmp_path):
    """What each kind may need, for 100 classes."""
    np.save(tmp_path / "labels.npy", LABELS[::-1])
    return {
        "rate": 0.4,
        "mapping": (*range(1, 100), 0),
        "path": str(tmp_path / "labels.npy"),
    }


def needed(kind, arguments):
    return {name: value for name, value in arguments.items() if name in NOISES[kind].needs}


@pytest.mark.parametrize("kind", NOISES)
def test_every_kind_is_applied_from_its_json(kind, arguments):
    noise = Noise(kind, seed=5, **needed(kind, arguments))
    sample_info = json.loads(json.dumps(noise.as_json()))
    again = Noise.from_json(sample_info)
    assert again == noise
    noisy = again.apply(LABELS, classes=100, samples=SAMPLES)
    assert (kind == "none") == np.array_equal(noisy, LABELS)
    assert noisy.dtype == LABELS.dtype
    assert not np.shares_memory(noisy, LABELS)
    direct = add_noise(
        kind, LABELS, classes=100, seed=5, samples=SAMPLES, **needed(kind, arguments)
    )
    np.testing.assert_array_equal(noisy, direct)


def test_names_lead_to_the_functions():
    for kind, make in (
        ("symmetric", functions.symmetric_noise),
        ("asymmetric", functions.asymmetric_noise),
        ("patrini", functions.patrini_noise),
        ("superclass", functions.superclass_noise),
    ):
        np.testing.assert_array_equal(
            add_noise(kind, LABELS, rate=0.3, classes=100, seed=1),
            make(LABELS, rate=0.3, classes=100, seed=1),
        )


def test_asymmetric_noise_may_have_a_mapping():
    noisy = add_noise("asymmetric", np.array([0, 1]), rate=1, classes=3, seed=0, mapping=[2, 0, 1])
    assert noisy.tolist() == [2, 0]


def test_unknown_kinds_offer_the_nearest():
    with pytest.raises(ChoiceError, match=r"no noise is called 'asymetric'.*'asymmetric'"):
        add_noise("asymetric", LABELS, rate=0.1, classes=100, seed=0)
    with pytest.raises(ChoiceError, match=r"'loud'. There are: none, symmetric"):
        Noise("loud")


@pytest.mark.parametrize("kind", [kind for kind in NOISES if NOISES[kind].needs])
def test_a_missing_argument_is_named(kind):
    with pytest.raises(ChoiceError, match=rf"{kind} noise needs .*(rate|path)"):
        add_noise(kind, LABELS, classes=100, seed=0)
    with pytest.raises(ChoiceError, match=rf"{kind} noise needs .*(rate|path)"):
        Noise(kind)


def test_an_argument_without_use_is_named():
    with pytest.raises(ChoiceError, match="symmetric noise does not use path; leave it out"):
        add_noise("symmetric", LABELS, rate=0.1, classes=100, seed=0, path="x")
    with pytest.raises(ChoiceError, match="none noise does not use rate"):
        Noise("none", rate=0.4)


def test_instance_noise_needs_samples_to_be_applied():
    with pytest.raises(ChoiceError, match="instance noise needs samples"):
        Noise("instance", rate=0.4).apply(LABELS, classes=100)


@pytest.mark.parametrize("kind", NOISES)
def test_every_kind_refuses_labels_out_of_range(kind, arguments):
    with pytest.raises(PredictionError, match=r"0\.\.99 for 100 classes; got 0\.\.100"):
        add_noise(
            kind,
            np.array([0, 100]),
            classes=100,
            seed=0,
            samples=SAMPLES[:2],
            **needed(kind, arguments),
        )
