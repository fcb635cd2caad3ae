import numpy as np
from voting import two_samples

from accord.rules import find_rule


def test_max_agreement_remembers_what_the_networks_forgot():
    predicted = find_rule("max-agreement")(two_samples())
    np.testing.assert_array_equal(predicted.labels, [0, 2])
    np.testing.assert_array_equal(predicted.scores, [0.5, 0.5])
    np.testing.assert_array_equal(find_rule("majority")(two_samples()).labels, [1, 0])
