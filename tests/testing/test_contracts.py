import pytest

from accord.rules import Rule, find_rule
from accord.testing import RuleContract


class Contrary(Rule):
    """A rule that breaks its contract: it predicts the first epoch of the first network."""

    name = "contrary"
    reads = "last"

    def __call__(self, rows):
        return find_rule("single")(rows.select(epochs=[0]))


class ContraryContract(RuleContract):
    rule = Contrary()

    def by_definition(self, record):
        return record.labels[-1, 0].tolist()


@pytest.mark.parametrize(
    "law",
    [
        "test_equals_its_definition",
        "test_the_order_of_networks_has_no_effect",
        "test_the_order_of_epochs_has_no_effect",
    ],
)
def test_the_contract_can_fail(law):
    with pytest.raises(AssertionError, match="not equal"):
        getattr(ContraryContract(), law)()
