"""scikit-learn's own checks of an estimator, all of them, none expected to fail."""

from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from accord.sklearn import MaxAgreementClassifier

CLASSIFIERS = [
    MaxAgreementClassifier(networks=2, epochs=20),
    MaxAgreementClassifier(SGDClassifier(), networks=2, epochs=5),
    MaxAgreementClassifier(GradientBoostingClassifier(n_estimators=5), networks=2),
]


@parametrize_with_checks(CLASSIFIERS)
def test_scikit_learn_accepts_the_classifier(estimator, check):
    check(estimator)
