"""Record real XGBoost, LightGBM and CatBoost, and compare with their own predictions."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import accord
from accord.boosting import LightGBMRounds, XGBoostRounds, record_rounds
from accord.errors import AccordWarning, ChoiceError, PredictionError, RecordClosed, RecordError
from accord.sklearn import MaxAgreementClassifier, open_recorder, record_stages

catboost = pytest.importorskip("catboost", reason="pip install catboost")
lightgbm = pytest.importorskip("lightgbm", reason="pip install 'accord[boosting]'")
xgboost = pytest.importorskip("xgboost", reason="pip install 'accord[boosting]'")

ROUNDS = 8
X, Y = make_blobs(300, 4, centers=3, cluster_std=4.0, random_state=0)
X_TEST = X[:70] + 0.5
NAMES = np.array(["owl", "cat", "dog"])[Y]
ORDER = ["owl", "dog", "cat"]
XGB = {"objective": "multi:softprob", "num_class": 3, "nthread": 1, "max_depth": 3}
LGB = {"objective": "multiclass", "num_class": 3, "num_threads": 1, "verbose": -1, "num_leaves": 7}


@pytest.fixture
def opened(tmp_path):
    def open_one(network=0, *, classes=range(3), **options):
        path = tmp_path / "record"
        return open_recorder(path, network=network, classes=classes, samples=70, **options)

    return open_one


def recorded(tmp_path):
    return np.asarray(accord.open(tmp_path / "record").labels)


def tables_in(tmp_path):
    rows = accord.open(tmp_path / "record").reader
    return rows.read_probabilities([0], range(rows.epochs), slice(None))[0]


def xgb_train(callbacks=(), *, settings=XGB, y=Y, rounds=ROUNDS, **options):
    data = xgboost.DMatrix(X, y)
    return xgboost.train(settings, data, rounds, callbacks=list(callbacks), **options)


def lgb_train(callbacks=(), *, settings=LGB, y=Y, rounds=ROUNDS, **options):
    data = lightgbm.Dataset(X, y)
    return lightgbm.train(settings, data, rounds, callbacks=list(callbacks), **options)


def xgb_stages(booster, rounds=ROUNDS):
    return [
        booster.predict(xgboost.DMatrix(X_TEST), iteration_range=(0, done))
        for done in range(1, rounds + 1)
    ]


def lgb_stages(booster, rounds=ROUNDS):
    return [booster.predict(X_TEST, num_iteration=done) for done in range(1, rounds + 1)]


FRAMEWORKS = {
    "xgboost": (XGBoostRounds, xgb_train, xgb_stages),
    "lightgbm": (LightGBMRounds, lgb_train, lgb_stages),
}


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    return FRAMEWORKS[request.param]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("during", [True, False])
def test_recorded_rounds_match_the_booster(tmp_path, opened, framework, every, during):
    rounds, train, stages = framework
    with opened(probabilities=True) as recorder:
        if during:
            booster = train([rounds(recorder, X_TEST, every=every)])
        else:
            booster = train()
            record_rounds(recorder, booster, X_TEST, every=every)
    expected = np.array(stages(booster))[every - 1 :: every]
    np.testing.assert_array_equal(recorded(tmp_path)[0], expected.argmax(axis=-1))
    np.testing.assert_allclose(tables_in(tmp_path), expected, atol=1e-3)
    progress = accord.open(tmp_path / "record").progress
    assert progress == tuple(range(every, ROUNDS + 1, every))


def test_repeated_training_records_only_missing_rounds(tmp_path, opened, framework):
    rounds, train, stages = framework
    for count in (3, ROUNDS, ROUNDS):
        with opened() as recorder:
            booster = train([rounds(recorder, X_TEST)], rounds=count)
            assert recorder.epochs == count
    expected = np.array(stages(booster)).argmax(axis=-1)
    np.testing.assert_array_equal(recorded(tmp_path)[0], expected)


def test_a_callback_records_one_training(opened, framework):
    rounds, train, _ = framework
    with opened() as recorder:
        callback = rounds(recorder, X_TEST)
        train([callback], rounds=2)
        with pytest.raises(ChoiceError, match="this callback has recorded a training"):
            train([callback], rounds=2)
        with pytest.raises(RecordError, match="in use for another network"):
            rounds(recorder, X_TEST)
        assert recorder.epochs == 2


def test_fewer_rounds_than_one_row_are_refused(opened, framework):
    _, train, _ = framework
    with opened() as recorder, pytest.raises(ChoiceError, match=r"every=9 and 8 rounds.*every=1"):
        record_rounds(recorder, train(), X_TEST, every=9)


def test_a_closed_recorder_stops_the_training(opened, framework):
    rounds, train, _ = framework
    with opened() as recorder:
        callback = rounds(recorder, X_TEST)
    with pytest.raises(RecordClosed, match="is closed"):
        train([callback])


def test_cross_validation_is_rejected(opened):
    with opened() as recorder, pytest.raises(ChoiceError, match=r"xgboost\.cv trains several"):
        xgboost.cv(XGB, xgboost.DMatrix(X, Y), 2, callbacks=[XGBoostRounds(recorder, X_TEST)])
    with opened() as recorder, pytest.raises(ChoiceError, match=r"lightgbm\.cv trains several"):
        lightgbm.cv(LGB, lightgbm.Dataset(X, Y), 2, callbacks=[LightGBMRounds(recorder, X_TEST)])


def test_fewer_classes_than_the_records_must_be_named(tmp_path, opened, framework):
    rounds, train, stages = framework
    settings = {**(XGB if train is xgb_train else LGB), "num_class": 2}
    y = (Y == 2).astype(int)
    with (
        opened() as recorder,
        pytest.raises(ChoiceError, match="the network has 2 classes and 3 are expec"),
    ):
        train([rounds(recorder, X_TEST)], settings=settings, y=y)
    with opened() as recorder:
        booster = train([rounds(recorder, X_TEST, classes=[0, 2])], settings=settings, y=y)
    expected = np.array(stages(booster)).argmax(axis=-1) * 2
    np.testing.assert_array_equal(recorded(tmp_path)[0], expected)


# Two classes and other objectives.


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw", "reg:logistic"])
def test_xgboost_with_two_classes(tmp_path, opened, objective):
    settings = {"objective": objective, "nthread": 1}
    with opened(classes=[0, 1], probabilities=True) as recorder:
        booster = xgb_train([XGBoostRounds(recorder, X_TEST)], settings=settings, y=Y == 2)
    margins = booster.predict(xgboost.DMatrix(X_TEST), output_margin=True)
    np.testing.assert_array_equal(recorded(tmp_path)[0, -1], margins > 0)
    second = 1 / (1 + np.exp(-margins))
    np.testing.assert_allclose(tables_in(tmp_path)[-1, :, 1], second, atol=1e-3)


@pytest.mark.parametrize("sigmoid", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["gbdt", "rf", "dart"])
def test_lightgbm_with_two_classes(tmp_path, opened, sigmoid, kind):
    settings = {"objective": "binary", "sigmoid": sigmoid, "boosting": kind, "verbose": -1}
    settings |= {"bagging_fraction": 0.5, "bagging_freq": 1, "num_threads": 1, "drop_rate": 0.5}
    with opened(classes=[0, 1], probabilities=True) as recorder:
        booster = lgb_train([LightGBMRounds(recorder, X_TEST)], settings=settings, y=Y == 2)
    second = booster.predict(X_TEST)
    np.testing.assert_array_equal(recorded(tmp_path)[0, -1], second > 0.5)
    np.testing.assert_allclose(tables_in(tmp_path)[-1, :, 1], second, atol=1e-3)


def test_softmax_labels_are_recorded(tmp_path, opened):
    settings = {**XGB, "objective": "multi:softmax"}
    with opened() as recorder:
        booster = xgb_train([XGBoostRounds(recorder, X_TEST)], settings=settings)
    np.testing.assert_array_equal(recorded(tmp_path)[0], xgb_stages(booster))


@pytest.mark.parametrize("kind", ["dart", "gblinear"])
def test_xgboosts_other_boosters_are_recorded_while_they_train(tmp_path, opened, kind):
    settings = {**XGB, "booster": kind}
    settings |= {"rate_drop": 0.5, "seed": 1} if kind == "dart" else {}
    if kind == "gblinear":
        settings.pop("max_depth")
    seen = []

    class Watch(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            seen.append(model.predict(xgboost.DMatrix(X_TEST)).argmax(axis=1))
            return False

    with opened() as recorder:
        booster = xgb_train([XGBoostRounds(recorder, X_TEST), Watch()], settings=settings)
    np.testing.assert_array_equal(recorded(tmp_path)[0], seen)
    with opened(1) as recorder, pytest.raises(ChoiceError, match=f"a {kind} booster changes"):
        record_rounds(recorder, booster, X_TEST)


def test_lightgbms_dart_is_recorded_while_it_trains(tmp_path, opened):
    settings = {**LGB, "boosting": "dart", "drop_rate": 0.5}
    seen = []
    watch = lambda env: seen.append(env.model.predict(X_TEST).argmax(axis=1))  # noqa: E731
    with opened() as recorder:
        booster = lgb_train([LightGBMRounds(recorder, X_TEST), watch], settings=settings)
    np.testing.assert_array_equal(recorded(tmp_path)[0], seen)
    with opened(1) as recorder, pytest.raises(ChoiceError, match="a dart booster changes"):
        record_rounds(recorder, booster, X_TEST)


def test_a_regressor_is_rejected(opened):
    words = "' one score per sample"
    with opened(classes=[0, 1]) as recorder, pytest.raises(ChoiceError, match=f"'reg:.*{words}"):
        xgb_train([XGBoostRounds(recorder, X_TEST)], settings={"nthread": 1}, y=Y == 2)
    settings = {"objective": "regression", "verbose": -1}
    with opened(classes=[0, 1]) as recorder, pytest.raises(ChoiceError, match=f"'regr.*{words}"):
        lgb_train([LightGBMRounds(recorder, X_TEST)], settings=settings, y=Y == 2)


def test_one_against_all_has_labels_and_no_probabilities(tmp_path, opened):
    settings = {**LGB, "objective": "multiclassova"}
    with opened() as recorder:
        booster = lgb_train([LightGBMRounds(recorder, X_TEST)], settings=settings)
    expected = np.array(lgb_stages(booster)).argmax(axis=-1)
    np.testing.assert_array_equal(recorded(tmp_path)[0], expected)
    words = "probabilities of multiclassova do not"
    with opened(1, probabilities=True) as recorder, pytest.raises(PredictionError, match=words):
        lgb_train([LightGBMRounds(recorder, X_TEST)], settings=settings)


def test_training_from_an_existing_booster_continues_the_count(tmp_path, opened, framework):
    rounds, train, stages = framework
    first = {xgb_train: "xgb_model", lgb_train: "init_model"}[train]
    with opened() as recorder:
        booster = train([rounds(recorder, X_TEST)], rounds=3)
    with opened() as recorder:
        booster = train([rounds(recorder, X_TEST)], rounds=5, **{first: booster})
        assert recorder.epochs == 8
    expected = np.array(stages(booster)).argmax(axis=-1)
    np.testing.assert_array_equal(recorded(tmp_path)[0], expected)


def test_lightgbm_continues_when_no_split_is_left(tmp_path, opened):
    settings = {**LGB, "min_data_in_leaf": 1000}
    with opened() as recorder:
        lgb_train([LightGBMRounds(recorder, X_TEST)], settings=settings)
        assert recorder.epochs == ROUNDS


# The scikit-learn faces of both.


def test_xgbclassifier_takes_the_callback(tmp_path, opened):
    options = {"n_estimators": 5, "n_jobs": 1, "max_depth": 3}
    with opened() as recorder:
        classifier = xgboost.XGBClassifier(**options, callbacks=[XGBoostRounds(recorder, X_TEST)])
        classifier.fit(X, Y)
    with opened(1) as recorder:
        record_rounds(recorder, xgboost.XGBClassifier(**options).fit(X, Y), X_TEST)
    during, after = recorded(tmp_path)
    np.testing.assert_array_equal(during, after)
    np.testing.assert_array_equal(during[-1], classifier.predict(X_TEST))


def test_an_xgbclassifier_without_the_last_class_is_recorded(tmp_path, opened):
    some = Y < 2
    classifier = xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(X[some], Y[some])
    with opened() as recorder:
        record_rounds(recorder, classifier, X_TEST)
    np.testing.assert_array_equal(recorded(tmp_path)[0, -1], classifier.predict(X_TEST))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_lgbmclassifier_takes_the_callback_and_labels_of_any_kind(tmp_path, opened):
    options = {"n_estimators": 5, "n_jobs": 1, "verbose": -1}
    for network, y in enumerate((NAMES, np.where(NAMES == "dog", "cat", NAMES))):
        with opened(2 * network, classes=ORDER) as recorder:
            rounds = LightGBMRounds(recorder, X_TEST, classes=np.unique(y))
            classifier = lightgbm.LGBMClassifier(**options).fit(X, y, callbacks=[rounds])
        with opened(2 * network + 1, classes=ORDER) as recorder:
            record_rounds(recorder, classifier, X_TEST)
        during, after = recorded(tmp_path)[-2:]
        np.testing.assert_array_equal(during, after)
        np.testing.assert_array_equal(np.array(ORDER)[during[-1]], classifier.predict(X_TEST))


def test_frames_with_names_are_recorded(tmp_path, opened):
    pandas = pytest.importorskip("pandas")
    frame, test = (pandas.DataFrame(one, columns=list("abcd")) for one in (X, X_TEST))
    with opened() as recorder:
        rounds = XGBoostRounds(recorder, test)
        classifier = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, callbacks=[rounds])
        classifier.fit(frame, Y)
    np.testing.assert_array_equal(recorded(tmp_path)[0, -1], classifier.predict(test))


QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


@pytest.mark.parametrize("probabilities", [False, True])
def test_stages_of_catboost_are_recorded(tmp_path, opened, probabilities):
    classifier = catboost.CatBoostClassifier(iterations=5, **QUIET).fit(X, NAMES)
    with opened(classes=ORDER, probabilities=probabilities) as recorder:
        record_stages(recorder, classifier, X_TEST)
    predicted = np.array(ORDER)[recorded(tmp_path)[0]]
    expected = [labels.ravel() for labels in classifier.staged_predict(X_TEST)]
    np.testing.assert_array_equal(predicted[1:], expected[1:])  # in the first, classes tie
    words = r"XGBClassifier has no staged_predict.* accord\.boosting\.record_rounds"
    with opened(1, classes=ORDER) as recorder, pytest.raises(ChoiceError, match=words):
        record_stages(recorder, xgboost.XGBClassifier(), X_TEST)


BASES = {
    "xgboost": xgboost.XGBClassifier(n_jobs=1, subsample=0.5),
    "lightgbm": lightgbm.LGBMClassifier(n_jobs=1, verbose=-1, subsample=0.5, subsample_freq=1),
    "catboost": catboost.CatBoostClassifier(**QUIET),
}


@pytest.mark.parametrize("labels", [NAMES, np.where(NAMES == "owl", 7, 3)], ids=["three", "two"])
@pytest.mark.parametrize("base", BASES)
def test_the_classifier_keeps_each_round(base, labels):
    classifier = MaxAgreementClassifier(BASES[base], networks=2, epochs=6, random_state=0)
    classifier.fit(X, labels, sample_weight=np.ones(len(X)))
    rounds = classifier.classes_[classifier.predict_epochs(X_TEST)]
    assert rounds.shape == (2, 6, len(X_TEST))
    assert (rounds[0] != rounds[1]).any()
    last = classifier.networks_[0].estimator.predict(X_TEST).ravel()
    np.testing.assert_array_equal(
        rounds[0, -1], classifier.classes_[last] if base == "xgboost" else last
    )
    assert classifier.score(X, labels) > 0.6
    thinned = MaxAgreementClassifier(BASES[base], networks=2, epochs=6, keep=2, random_state=0)
    kept = thinned.fit(X, labels).predict_epochs(X_TEST)
    np.testing.assert_array_equal(thinned.classes_[kept], rounds[:, [0, -1]])


@pytest.mark.parametrize("base", ["xgboost", "lightgbm"])
def test_boosting_without_randomness_needs_a_bootstrap(base):
    equal = {"subsample": 1.0}
    bases = (BASES[base].__class__(**{**BASES[base].get_params(), **equal}) for _ in range(2))
    with pytest.warns(AccordWarning, match="all 2 networks are equal"):
        MaxAgreementClassifier(next(bases), networks=2, epochs=3).fit(X, NAMES)
    drawn = MaxAgreementClassifier(next(bases), networks=2, epochs=3, bootstrap=True).fit(X, NAMES)
    one, two = drawn.predict_epochs(X)
    assert (one != two).any()


def test_the_classifier_takes_the_categories_of_catboost():
    kinds = np.array(["low", "high"], object)[(X[:, 0] > 0).astype(int)]
    table = np.column_stack([kinds, X[:, 1:].astype(object)])
    base = catboost.CatBoostClassifier(cat_features=[0], iterations=5, **QUIET)
    classifier = MaxAgreementClassifier(base, networks=2, random_state=0).fit(table, NAMES)
    assert classifier.predict_epochs(table).shape == (2, 5, len(X))
    assert classifier.score(table, NAMES) > 0.7
    assert not base.is_fitted()
