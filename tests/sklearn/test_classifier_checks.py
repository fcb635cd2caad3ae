"""The estimator checks of scikit-learn, except two that SGDClassifier does not pass either."""

import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from accord.sklearn import MaxAgreementClassifier

# This gradient boosting uses no randomness.
pytestmark = pytest.mark.filterwarnings("ignore:all 2 networks are equal")

CLASSIFIERS = [
    MaxAgreementClassifier(networks=2, epochs=20),
    MaxAgreementClassifier(SGDClassifier(), networks=2, epochs=5),
    MaxAgreementClassifier(GradientBoostingClassifier(n_estimators=5), networks=2),
]
# scikit-learn marks the same checks as failing for SGDClassifier.
SHUFFLED = "a sample of weight 2 is used once, and two samples at two steps of an epoch"


def expected_to_fail(classifier):
    if not isinstance(classifier.estimator, SGDClassifier):
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": SHUFFLED for kind in kinds}


@parametrize_with_checks(CLASSIFIERS, expected_failed_checks=expected_to_fail)
def test_scikit_learn_accepts_the_classifier(estimator, check):
    check(estimator)
