import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord.analysis._network_health import chance_error, good_networks, network_health
from accord.store import ArrayReader, SampleInfo

EPOCHS = 24


def labels_of_a_run(networks=4, **options):
    rows = draw_run(right_chances(EPOCHS), networks=networks, **options)
    return rows.read_labels(range(networks), range(EPOCHS), slice(None)).copy(), rows.sample_info


def spoil(*bad, networks=4):
    labels, sample_info = labels_of_a_run(networks + len(bad))
    generator = np.random.default_rng(9)
    for network, kind in enumerate(bad, start=networks):
        if kind == "random":
            labels[network] = generator.integers(0, sample_info.classes, labels[network].shape)
        elif kind == "constant":
            labels[network] = 2
        elif kind == "diverged":
            late = labels[network, EPOCHS // 2 :]
            late[:] = generator.integers(0, sample_info.classes, late.shape)
        else:
            blurred = generator.random(labels[network].shape) < 0.65
            strange = generator.integers(0, sample_info.classes, labels[network].shape)
            labels[network] = np.where(blurred, strange, labels[network])
    return ArrayReader(labels, sample_info)


@pytest.mark.parametrize("kind", ["random", "constant", "diverged", "weak"])
def test_a_bad_network_is_named(kind):
    rows = spoil(kind)
    assert [member.kind for member in network_health(rows)] == ["good"] * 4 + [kind]
    assert good_networks(rows) == [0, 1, 2, 3]


def test_two_good_networks_are_not_outvoted():
    rows = spoil(*["random"] * 5, *["constant"] * 4, networks=2)
    assert good_networks(rows) == [0, 1]


def test_networks_are_named_by_their_own_numbers():
    rows = spoil("random").select(networks=[4, 3, 2, 1])
    assert [(member.network, member.kind) for member in network_health(rows)] == [
        (4, "random"), (3, "good"), (2, "good"), (1, "good"),
    ]  # fmt: skip


def test_agreement_is_kappa_with_the_best_fellow():
    labels, sample_info = labels_of_a_run(3)
    found = network_health(ArrayReader(labels, sample_info))
    last = labels[:, -EPOCHS // 4 :]
    for one in range(3):
        kappas = []
        for other in {0, 1, 2} - {one}:
            by_epoch = []
            for epoch in range(last.shape[1]):
                a, b = last[one, epoch], last[other, epoch]
                chance = sum((a == c).mean() * (b == c).mean() for c in range(sample_info.classes))
                by_epoch.append(((a == b).mean() - chance) / (1 - chance))
            kappas.append(np.mean(by_epoch))
        assert found[one].agreement == pytest.approx(max(kappas))
        assert found[one].at_best >= found[one].agreement
        counts = np.bincount(last[one].ravel(), minlength=sample_info.classes)
        assert found[one].commonest == pytest.approx(counts.max() / counts.sum())


def test_a_network_recorded_twice_makes_no_other_bad():
    labels, sample_info = labels_of_a_run(4, seed=1)
    apart = draw_run(np.full(EPOCHS, 0.55), networks=4, seed=2)
    labels[:] = apart.read_labels(range(4), range(EPOCHS), slice(None))
    labels[3] = labels[2]
    assert good_networks(ArrayReader(labels, sample_info)) == [0, 1, 2, 3]


def test_a_whole_ensemble_that_overfits_has_no_bad_network():
    assert len(good_networks(draw_run(right_chances(40, end=0.4)))) == 5


@pytest.mark.parametrize(("blurred", "kind"), [(0.35, "good"), (0.6, "weak")])
def test_half_of_what_others_reach_is_enough(blurred, kind):
    """Guessing on a share of the samples takes that share of the agreement beyond chance away."""
    labels, sample_info = labels_of_a_run(5)
    generator = np.random.default_rng(9)
    strange = generator.integers(0, sample_info.classes, labels[4].shape)
    labels[4] = np.where(generator.random(labels[4].shape) < blurred, strange, labels[4])
    found = network_health(ArrayReader(labels, sample_info))
    assert found[4].agreement / found[0].agreement == pytest.approx(1 - blurred, abs=0.06)
    assert found[4].kind == kind


@pytest.mark.parametrize(
    ("samples", "classes", "expected"),
    [(100, 2, 0.3), (100, 10, 0.1), (100, 1, 0.3), (10**6, 2, 0.05)],
)
def test_chance_is_three_standard_errors_of_kappa(samples, classes, expected):
    rows = ArrayReader(np.zeros((2, 1, samples), np.uint8), SampleInfo(samples, classes))
    assert chance_error(rows) == pytest.approx(expected)


@pytest.mark.parametrize(("repeated", "kind"), [(1, "random"), (20, "weak")])
def test_agreement_within_chance_is_random(repeated, kind):
    right = np.tile([0, 1], 20 * repeated)
    guessed = np.tile([0, 1] * 12 + [1, 0] * 8, repeated)  # kappa is 0.2
    labels = np.stack([right, right, guessed])[:, np.newaxis].astype(np.uint8)
    rows = ArrayReader(labels, SampleInfo(len(right), 2))
    assert network_health(rows)[2].agreement == pytest.approx(0.2)
    assert network_health(rows)[2].kind == kind


def test_where_nobody_agrees_nobody_is_named():
    labels = np.random.default_rng(0).integers(0, 4, (3, 8, 500)).astype(np.uint8)
    for rows in (
        ArrayReader(labels, SampleInfo(500, 4)),
        ArrayReader(labels[:1], SampleInfo(500, 4)),
        ArrayReader(np.zeros((3, 2, 50), np.uint8), SampleInfo(50, 1)),
        ArrayReader(np.zeros((3, 1, 50), np.uint8), SampleInfo(50, 3)),
    ):
        assert all(member.good for member in network_health(rows))
