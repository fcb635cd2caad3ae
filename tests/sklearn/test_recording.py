"""Recorded predictions equal those of the estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import accord
from accord.errors import ChoiceError, PredictionError, RecordClosed, RecordError, RowExists
from accord.sklearn import (
    open_recorder,
    record_epoch,
    record_partial_fit,
    record_stages,
    record_warm_start,
)
from accord.sklearn._fit_by_epoch import grow_by_partial_fit, grow_by_warm_start

X, NUMBERS = make_blobs(150, 4, centers=3, cluster_std=4.0, random_state=0)
X_TEST = X[:40] + 0.5
NAMES = np.array(["owl", "cat", "dog"])[NUMBERS]  # neither sorted nor numeric
ORDER = ["owl", "dog", "cat"]  # a different order from the record's


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread: waiting threads make boosting ten times slower on busy cores."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def opened(tmp_path):
    def open_one(network=0, *, classes=ORDER, samples=40, **options):
        path = tmp_path / "record"
        return open_recorder(path, network=network, classes=classes, samples=samples, **options)

    return open_one


def recorded(tmp_path, *, order=ORDER):
    """Return the recorded labels as the estimator's classes (network, epoch, sample)."""
    return np.array(order)[np.asarray(accord.open(tmp_path / "record").labels)]


def probabilities_in(tmp_path):
    rows = accord.open(tmp_path / "record").reader
    return rows.read_probabilities([0], range(rows.epochs), slice(None))[0]


# A recorder for any labels


def test_labels_of_any_kind_become_positions(tmp_path):
    with open_recorder(
        tmp_path / "record", network=0, classes=[20, 5], truth=[5, 20, 5], given=[20, 20, 20]
    ) as recorder:
        recorder.record([0, 1, 1])
    record = accord.open(tmp_path / "record")
    np.testing.assert_array_equal(record.truth, [1, 0, 1])
    np.testing.assert_array_equal(record.given, [0, 0, 0])
    assert record.class_names == ("20", "5")


def test_a_recorder_needs_the_number_of_samples(tmp_path):
    with pytest.raises(ChoiceError, match="number of samples is unknown"):
        open_recorder(tmp_path / "record", network=0, classes=[0, 1])
    with open_recorder(tmp_path / "record", network=0, classes=[0, 1], given=[0, 1]) as recorder:
        recorder.record([0, 1])


def test_truth_of_another_length_is_refused(tmp_path):
    with pytest.raises(PredictionError, match=r"truth must have shape \(3,\)"):
        open_recorder(tmp_path / "record", network=0, classes=[0, 1], truth=[0, 1], samples=3)


def test_truth_with_an_unknown_class_is_refused(tmp_path):
    with pytest.raises(PredictionError, match=r"'emu'.* is none of owl, dog, cat"):
        open_recorder(tmp_path / "record", network=0, classes=ORDER, truth=["emu"])


# A custom loop


def test_one_line_in_a_loop_records_the_predictions(tmp_path, opened):
    estimator, predicted = GaussianNB(), []
    with opened() as recorder:
        for epoch, part in enumerate(np.array_split(np.arange(150), 3)):
            estimator.partial_fit(X[part], NAMES[part], classes=np.unique(NAMES))
            record_epoch(recorder, estimator, X_TEST, epoch=epoch, progress=epoch + 0.5, part=epoch)
            predicted.append(estimator.predict(X_TEST))
    np.testing.assert_array_equal(recorded(tmp_path)[0], predicted)
    record = accord.open(tmp_path / "record")
    assert record.progress == (0.5, 1.5, 2.5)
    assert record.networks_info[0].metrics[2] == {"part": 2}


def test_an_epoch_recorded_twice_is_refused(opened):
    estimator = GaussianNB().fit(X, NAMES)
    with opened() as recorder:
        record_epoch(recorder, estimator, X_TEST, epoch=0)
        with pytest.raises(RowExists, match="epoch 0 was recorded before"):
            record_epoch(recorder, estimator, X_TEST, epoch=0)
        assert recorder.epochs == 1
    with pytest.raises(RecordClosed, match="is closed"):
        record_epoch(recorder, estimator, X_TEST)


def test_integer_classes_need_no_names(tmp_path):
    estimator = GaussianNB().fit(X, NUMBERS)
    with accord.Recorder(
        tmp_path / "record", network=0, samples=len(X_TEST), classes=3
    ) as recorder:
        record_epoch(recorder, estimator, X_TEST)
    np.testing.assert_array_equal(
        accord.open(tmp_path / "record").labels[0, 0], estimator.predict(X_TEST)
    )


def test_a_class_missing_from_the_training_samples_keeps_its_place(tmp_path, opened):
    some = NAMES != "dog"
    estimator = GaussianNB().fit(X[some], NAMES[some])
    with opened(probabilities=True) as recorder:
        record_epoch(recorder, estimator, X_TEST)
    np.testing.assert_array_equal(recorded(tmp_path)[0, 0], estimator.predict(X_TEST))
    expected = np.zeros((len(X_TEST), 3))
    expected[:, [2, 0]] = estimator.predict_proba(X_TEST)  # cat, owl
    np.testing.assert_allclose(probabilities_in(tmp_path)[0], expected, atol=1e-3)


def test_two_classes_are_recorded_with_their_probabilities(tmp_path, opened):
    two = NAMES != "cat"
    estimator = MLPClassifier((4,), random_state=0).partial_fit(
        X[two], NAMES[two], classes=["dog", "owl"]
    )
    with opened(classes=["owl", "dog"], probabilities=True) as recorder:
        record_epoch(recorder, estimator, X_TEST)
    order = ["owl", "dog"]
    np.testing.assert_array_equal(recorded(tmp_path, order=order)[0, 0], estimator.predict(X_TEST))
    expected = estimator.predict_proba(X_TEST)[:, ::-1]
    np.testing.assert_allclose(probabilities_in(tmp_path)[0], expected, atol=1e-3)


def test_labels_are_those_of_predict_even_if_probabilities_tie(tmp_path, opened):
    """Far from the data, modified_huber gives several classes probability 1."""
    estimator = SGDClassifier(loss="modified_huber", random_state=0).fit(X * 100, NAMES)
    with opened() as recorder:
        record_epoch(recorder, estimator, X_TEST * 100)
    np.testing.assert_array_equal(recorded(tmp_path)[0, 0], estimator.predict(X_TEST * 100))


def test_nan_probabilities_are_refused(opened):
    estimator = GaussianNB().fit(X, NAMES)
    estimator.theta_[0, 0] = np.nan
    with opened(probabilities=True) as recorder, np.errstate(all="ignore"):
        with pytest.raises(PredictionError, match="must be finite; sample 0 holds NaN"):
            record_epoch(recorder, estimator, X_TEST)
        assert recorder.epochs == 0


def test_an_estimator_without_probabilities_is_refused(opened):
    estimator = SGDClassifier().fit(X, NAMES)
    with (
        opened(probabilities=True) as recorder,
        pytest.raises(PredictionError, match=r"SGDClassifier with its .* no predict_proba"),
    ):
        record_epoch(recorder, estimator, X_TEST)


def test_classes_unknown_to_the_record_are_refused(opened):
    with opened() as recorder, pytest.raises(ChoiceError, match="0, 1, 2, 3 are not all among"):
        record_epoch(recorder, GaussianNB().fit(X, np.arange(150) % 4), X_TEST)


# partial_fit


@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(loss="log_loss", random_state=0),
        MLPClassifier((8,), random_state=0),
        GaussianNB(),
        Perceptron(random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_partial_fit_is_recorded_at_every_epoch(tmp_path, opened, estimator):
    twin, predicted = clone(estimator), []
    for _ in range(4):
        twin.partial_fit(X, NAMES, classes=np.unique(NAMES))
        predicted.append(twin.predict(X_TEST))
    with opened() as recorder:
        trained = record_partial_fit(recorder, estimator, X, NAMES, X_TEST, epochs=4)
    assert trained is estimator
    np.testing.assert_array_equal(recorded(tmp_path)[0], predicted)
    assert accord.open(tmp_path / "record").progress == (1, 2, 3, 4)


def test_probabilities_are_recorded_if_the_recorder_stores_them(tmp_path, opened):
    estimator = MLPClassifier((8,), random_state=0)
    with opened(probabilities=True) as recorder:
        record_partial_fit(recorder, estimator, X, NAMES, X_TEST, epochs=2)
    expected = estimator.predict_proba(X_TEST)[:, [2, 1, 0]]  # cat, dog, owl -> owl, dog, cat
    np.testing.assert_allclose(probabilities_in(tmp_path)[-1], expected, atol=1e-3)


def test_restarted_training_records_only_missing_epochs(tmp_path, opened):
    for epochs in (2, 5, 5):
        with opened() as recorder:
            network = MLPClassifier((8,), random_state=0)
            record_partial_fit(recorder, network, X, NAMES, X_TEST, epochs=epochs, seed=1)
            assert recorder.epochs == epochs
    with opened(network=1) as recorder:
        network = MLPClassifier((8,), random_state=0)
        record_partial_fit(recorder, network, X, NAMES, X_TEST, epochs=5, seed=1)
    parts, whole = recorded(tmp_path)
    np.testing.assert_array_equal(parts, whole)


class Remembers(GaussianNB):
    """Records its arguments."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.seen = [*getattr(self, "seen", []), (X, y, sample_weight)]
        return super().partial_fit(X, y, classes, sample_weight)


def test_a_seed_shuffles_samples_with_their_labels_at_every_epoch():
    weights = NUMBERS + X[:, 0] ** 2
    orders = []
    for seed in (1, 1, 2):
        estimator = Remembers()
        list(grow_by_partial_fit(estimator, X, NAMES, epochs=2, seed=seed, sample_weight=weights))
        for samples, labels, given in estimator.seen:
            order = [int(np.flatnonzero((sample == X).all(axis=1))[0]) for sample in samples]
            assert sorted(order) == list(range(150))
            np.testing.assert_array_equal(labels, NAMES[order])
            np.testing.assert_array_equal(given, weights[order])
            orders.append(order)
    assert orders[:2] == orders[2:4]
    assert len({tuple(order) for order in orders}) == 4


def test_without_a_seed_samples_keep_their_order():
    estimator = Remembers()
    assert list(grow_by_partial_fit(estimator, X, NAMES, epochs=2)) == [1, 2]
    for samples, labels, given in estimator.seen:
        np.testing.assert_array_equal(samples, X)
        np.testing.assert_array_equal(labels, NAMES)
        assert given is None


def test_classes_can_list_labels_missing_from_the_training_data(opened):
    some = NAMES != "dog"
    with opened() as recorder:
        trained = record_partial_fit(
            recorder, Perceptron(), X[some], NAMES[some], X_TEST, epochs=1, classes=sorted(ORDER)
        )
    assert trained.classes_.tolist() == sorted(ORDER)


def test_weights_reach_the_estimator(opened):
    weights = (NAMES == "dog") + 1e-9
    with opened() as recorder:
        trained = record_partial_fit(
            recorder, GaussianNB(), X, NAMES, X_TEST, epochs=1, sample_weight=weights
        )
    np.testing.assert_allclose(trained.class_prior_, [0, 1, 0], atol=1e-6)


def test_a_second_network_requires_a_second_recorder(opened):
    with opened() as recorder:
        record_partial_fit(recorder, GaussianNB(), X, NAMES, X_TEST, epochs=1)
        with pytest.raises(RecordError, match="in use for another network"):
            record_partial_fit(recorder, GaussianNB(), X, NAMES, X_TEST, epochs=1)
        with pytest.raises(RecordError, match="in use for another network"):
            record_warm_start(recorder, MLPClassifier(), X, NAMES, X_TEST, epochs=1)


@pytest.mark.parametrize(
    ("estimator", "epochs", "words"),
    [
        (KNeighborsClassifier(), 2, "KNeighborsClassifier has no partial_fit. Estimators train by"),
        (GaussianNB().fit(X, NAMES), 2, "this GaussianNB is already fitted"),
        (GaussianNB(), 0, "epochs must be a whole number, at least 1; got 0"),
    ],
)
def test_estimators_without_partial_fit_are_refused(opened, estimator, epochs, words):
    with opened() as recorder, pytest.raises(ChoiceError, match=words):
        record_partial_fit(recorder, estimator, X, NAMES, X_TEST, epochs=epochs)


# warm_start


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [
        (RandomForestClassifier(random_state=0), "n_estimators"),
        (GradientBoostingClassifier(random_state=0), "n_estimators"),
        (HistGradientBoostingClassifier(random_state=0, min_samples_leaf=5), "max_iter"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ensembles_are_recorded_at_every_size(tmp_path, opened, estimator, parameter):
    with opened() as recorder:
        record_warm_start(recorder, estimator, X, NAMES, X_TEST, epochs=3, step=2)
    assert estimator.get_params()[parameter] == 6
    assert not estimator.warm_start
    for size, predicted in zip((2, 4, 6), recorded(tmp_path)[0], strict=True):
        twin = clone(estimator).set_params(**{parameter: size}).fit(X, NAMES)
        np.testing.assert_array_equal(predicted, twin.predict(X_TEST))


@pytest.mark.parametrize("kind", [MLPClassifier, LogisticRegression])
def test_each_epoch_continues_from_the_last(tmp_path, opened, kind):
    estimator = kind(random_state=0, max_iter=77)
    with opened() as recorder:
        record_warm_start(recorder, estimator, X, NAMES, X_TEST, epochs=3)
    assert (estimator.max_iter, estimator.warm_start) == (77, False)
    first, *_, last = recorded(tmp_path)[0]
    assert (last != first).any()
    np.testing.assert_array_equal(last, estimator.predict(X_TEST))


def test_restarted_warm_start_records_only_missing_epochs(tmp_path, opened):
    for epochs in (2, 4):
        with opened() as recorder:
            network = MLPClassifier((8,), random_state=0)
            record_warm_start(recorder, network, X, NAMES, X_TEST, epochs=epochs)
            assert recorder.epochs == epochs


def test_weights_reach_a_warm_start():
    weights = (NAMES == "dog") + 0.0
    forest = RandomForestClassifier(random_state=0)
    for _ in grow_by_warm_start(forest, X, NAMES, epochs=1, sample_weight=weights):
        assert set(forest.predict(X)) == {"dog"}


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (DecisionTreeClassifier(), "DecisionTreeClassifier has no warm_start"),
        (RandomForestClassifier(5).fit(X, NAMES), "this RandomForestClassifier is already fitted"),
    ],
)
def test_estimators_without_warm_start_are_refused(opened, estimator, words):
    with opened() as recorder, pytest.raises(ChoiceError, match=words):
        record_warm_start(recorder, estimator, X, NAMES, X_TEST, epochs=2)


# Stages


@pytest.mark.parametrize(
    "estimator",
    [
        GradientBoostingClassifier(n_estimators=7, random_state=0),
        HistGradientBoostingClassifier(max_iter=7, random_state=0, min_samples_leaf=5),
        AdaBoostClassifier(n_estimators=7, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("keep", [False, True])
def test_stages_are_recorded_after_the_fit(tmp_path, opened, estimator, keep):
    estimator = clone(estimator).fit(X, NAMES)
    with opened(probabilities=keep) as recorder:
        record_stages(recorder, estimator, X_TEST, every=2)
    stages = list(estimator.staged_predict(X_TEST))
    np.testing.assert_array_equal(recorded(tmp_path)[0], stages[1::2])
    assert accord.open(tmp_path / "record").progress == (2, 4, 6)
    if keep:
        tables = np.array(list(estimator.staged_predict_proba(X_TEST)))[1::2][..., [2, 1, 0]]
        np.testing.assert_allclose(probabilities_in(tmp_path), tables, atol=1e-3)


def test_stages_of_two_classes_are_recorded(tmp_path, opened):
    two = NAMES != "cat"
    estimator = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X[two], NAMES[two])
    with opened() as recorder:
        record_stages(recorder, estimator, X_TEST)
    np.testing.assert_array_equal(recorded(tmp_path)[0], list(estimator.staged_predict(X_TEST)))


def test_stages_recorded_again_are_unchanged(opened):
    small = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, NAMES)
    large = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, NAMES)
    for estimator, epochs in ((small, 2), (large, 5), (large, 5)):
        with opened() as recorder:
            record_stages(recorder, estimator, X_TEST)
            assert recorder.epochs == epochs


def test_fewer_stages_than_one_row_are_refused(opened):
    boosting = GradientBoostingClassifier(n_estimators=20, max_depth=1).fit(X, NAMES)
    with opened() as recorder, pytest.raises(ChoiceError, match=r"every=50 and 20 rounds.*every=2"):
        record_stages(recorder, boosting, X_TEST, every=50)


def test_estimators_without_stages_are_refused(opened):
    forest = RandomForestClassifier(5).fit(X, NAMES)
    with opened() as recorder, pytest.raises(ChoiceError, match="has no staged_predict"):
        record_stages(recorder, forest, X_TEST)
