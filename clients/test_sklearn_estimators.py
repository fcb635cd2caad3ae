"""Real scripts with scikit-learn's own estimators, on digits with 40 % wrong labels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

import accord
from accord.data.noise import symmetric_noise
from accord.sklearn import (
    MaxAgreementClassifier,
    open_recorder,
    record_partial_fit,
    record_stages,
    record_warm_start,
)

IMAGES, TRUTH = load_digits(return_X_y=True)
X, X_TEST, CLEAN, Y_TEST = train_test_split(IMAGES / 16, TRUTH, test_size=0.4, random_state=0)
GIVEN = symmetric_noise(CLEAN, rate=0.4, classes=10, seed=0)
NETWORKS = 2


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for a busy core make boosting ten times slower."""
    with threadpool_limits(1):
        yield


def train(path, follow):
    for network in range(NETWORKS):
        with open_recorder(path, network=network, classes=np.unique(TRUTH), truth=Y_TEST) as one:
            follow(one, network)
    record = accord.open(path)
    assert record.networks == NETWORKS
    return {score.rule: score.accuracy for score in record.score()}


@pytest.mark.parametrize(
    "network",
    [SGDClassifier(loss="log_loss"), MLPClassifier((64,), batch_size=32)],
    ids=lambda network: type(network).__name__,
)
def test_partial_fit(tmp_path, network):
    def follow(recorder, seed):
        estimator = type(network)(**{**network.get_params(), "random_state": seed})
        record_partial_fit(recorder, estimator, X, GIVEN, X_TEST, epochs=20, seed=seed)

    scores = train(tmp_path / "record", follow)
    assert scores["max-agreement"] > 0.8, scores


def test_gradient_boosting_by_stages(tmp_path):
    def follow(recorder, seed):
        boosting = GradientBoostingClassifier(
            n_estimators=12, subsample=0.5, max_features=0.3, random_state=seed
        )
        record_stages(recorder, boosting.fit(X, GIVEN), X_TEST)

    scores = train(tmp_path / "record", follow)
    assert scores["max-agreement"] > 0.7, scores


def test_hist_gradient_boosting_by_stages_and_by_warm_start(tmp_path):
    settings = {"max_features": 0.5, "max_leaf_nodes": 15}

    def by_stages(recorder, seed):
        boosting = HistGradientBoostingClassifier(**settings, max_iter=20, random_state=seed)
        record_stages(recorder, boosting.fit(X, GIVEN), X_TEST, every=2)

    def by_warm_start(recorder, seed):
        boosting = HistGradientBoostingClassifier(**settings, random_state=seed)
        record_warm_start(recorder, boosting, X, GIVEN, X_TEST, epochs=10, step=2)

    assert train(tmp_path / "stages", by_stages)["max-agreement"] > 0.75
    assert train(tmp_path / "warm", by_warm_start)["max-agreement"] > 0.75
    shapes = {accord.open(tmp_path / name).labels.shape for name in ("stages", "warm")}
    assert shapes == {(NETWORKS, 10, len(Y_TEST))}


@pytest.mark.parametrize("package", ["xgboost.XGBClassifier", "lightgbm.LGBMClassifier"])
def test_early_stopping_of_a_boosting_is_refused(package):
    package, name = package.split(".")
    boosting = getattr(pytest.importorskip(package), name)(early_stopping_rounds=2)
    with pytest.raises(accord.errors.ChoiceError, match="set early_stopping_rounds=None"):
        MaxAgreementClassifier(boosting).fit(X, GIVEN)


def test_the_classifier_undoes_what_its_networks_overfit():
    classifier = MaxAgreementClassifier(networks=3, random_state=0).fit(X, GIVEN)
    last = (classifier.predict_epochs(X_TEST)[:, -1] == Y_TEST).mean()
    assert classifier.score(X_TEST, Y_TEST) > last + 0.02
