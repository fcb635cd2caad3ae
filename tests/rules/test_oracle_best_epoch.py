import numpy as np
from voting import two_samples

from accord.rules import find_rule


def test_the_oracle_takes_the_first_of_equally_good_epochs():
    oracle = find_rule("oracle-best-epoch")
    for truth, epoch in (([0, 2], 1), ([2, 2], 1), ([0, 0], 0)):
        assert oracle(two_samples(truth=np.array(truth))).epoch == epoch
