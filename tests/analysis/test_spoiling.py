import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord.analysis._network_health import CorruptReader, accuracy_with_bad_networks
from accord.errors import ChoiceError, ProbabilitiesMissing
from accord.rules import find_rule

RUN = draw_run(right_chances(12, peak=0.8), networks=3)


def test_real_networks_are_left_as_they_are():
    spoilt = CorruptReader(RUN.select(networks=[0, 2]), kind="random", count=2)
    assert spoilt.numbers == (0, 2, 3, 4)
    everything = range(2), range(12), slice(None)
    np.testing.assert_array_equal(
        spoilt.read_labels(*everything), RUN.select(networks=[0, 2]).read_labels(*everything)
    )
    assert [told.network for told in spoilt.networks_info()] == [0, 2, 3, 4]
    assert spoilt.networks_info()[-1].progress == RUN.networks_info()[0].progress


def test_random_networks_are_random_and_always_the_same():
    spoilt = CorruptReader(RUN, kind="random", count=2, seed=5)
    whole = spoilt.read_labels([3, 4], range(12), slice(None))
    part = spoilt.read_labels([4], [7], slice(10, 20))
    np.testing.assert_array_equal(part[0, 0], whole[1, 7, 10:20])
    assert np.bincount(whole.ravel(), minlength=5).min() > 0.17 * whole.size
    assert (whole[0] == whole[1]).mean() == pytest.approx(0.2, abs=0.03)
    other = CorruptReader(RUN, kind="random", count=2, seed=6).read_labels([3], [0], slice(None))
    assert (other[0, 0] != whole[0, 0]).any()


def test_constant_networks_say_one_class():
    labels = CorruptReader(RUN, kind="constant", count=2).read_labels(
        [3, 4], range(12), slice(None)
    )
    assert labels.shape == (2, 12, RUN.samples)
    assert not labels.any()


@pytest.mark.parametrize("kind", ["random", "constant"])
def test_leaving_bad_networks_out_keeps_the_accuracy(kind):
    counts = [0, 3, 9]
    with_them = accuracy_with_bad_networks(RUN, counts, kind=kind)
    without = accuracy_with_bad_networks(RUN, counts, kind=kind, leave_out=True)
    own = np.mean(find_rule("max-agreement")(RUN).labels == RUN.truth())
    assert with_them[0] == own
    np.testing.assert_array_equal(without, [own] * 3)
    assert with_them[2] < own
    majority = accuracy_with_bad_networks(RUN, [0], rule="majority")
    assert majority[0] == np.mean(find_rule("majority")(RUN).labels == RUN.truth())


def test_what_is_no_bad_network_is_refused():
    for options in ({"kind": "lazy", "count": 1}, {"kind": "random", "count": -1}):
        with pytest.raises(ChoiceError, match="'random' or 'constant'"):
            CorruptReader(RUN, **options)
    with pytest.raises(ProbabilitiesMissing, match="bad networks added to it have labels alone"):
        CorruptReader(RUN, kind="random", count=1).read_probabilities([0], [0], slice(None))
