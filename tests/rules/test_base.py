import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from voting import two_samples

from accord.errors import ProbabilitiesMissing, TruthMissing
from accord.rules import all_rules, find_rule
from accord.testing._contracts import reader_of, small_records


@pytest.mark.parametrize("name", [name for name, rule in all_rules().items() if rule.by_sample])
@given(small_records(), st.data())
def test_a_rule_by_sample_predicts_a_range_as_it_predicts_the_whole(name, record, data):
    cut = slice(data.draw(st.integers(0, record.labels.shape[2] - 1)), None)
    rows, rule = reader_of(record), find_rule(name)
    whole, part = rule(rows), rule(rows.select(samples=cut))
    np.testing.assert_array_equal(part.labels, whole.labels[cut])
    np.testing.assert_array_equal(part.scores, whole.scores[cut])


def test_a_rule_raises_if_its_data_are_missing():
    with pytest.raises(TruthMissing, match="the record has no true labels"):
        find_rule("oracle-best-epoch")(two_samples())
    for name in ("probability-average", "soft-agreement"):
        with pytest.raises(ProbabilitiesMissing, match="the record has labels only"):
            find_rule(name)(two_samples())
