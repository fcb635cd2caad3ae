"""`MaxAgreementClassifier` and `ModuleClassifier`."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter
from torch import nn

import accord
from accord.errors import (
    AccordWarning,
    ChoiceError,
    ExtraMissing,
    PredictionError,
    UnequalNetworks,
)
from accord.rules.dawid_skene import DawidSkene
from accord.sklearn import MaxAgreementClassifier, ModuleClassifier
from accord.sklearn._fit_by_epoch import grow_by_partial_fit, train_network, with_seed
from sklearn import config_context

# Some bases use no randomness.
pytestmark = pytest.mark.filterwarnings("ignore:all . networks are equal")

X, NUMBERS = make_blobs(150, 4, centers=3, cluster_std=3.0, random_state=0)
NAMES = np.array(["owl", "cat", "dog"])[NUMBERS]
KINDS = {
    "default": (None, 4),
    "partial_fit": (SGDClassifier(), 4),
    "staged": (GradientBoostingClassifier(subsample=0.5), 4),
    "hist": (HistGradientBoostingClassifier(max_features=0.5), 4),
    "ada": (AdaBoostClassifier(), 4),
    "warm start": (RandomForestClassifier(), 4),
    "pipeline": (make_pipeline(StandardScaler(), MLPClassifier((5,))), 4),
    "pipeline of one": (make_pipeline(SGDClassifier()), 4),
    "module": (ModuleClassifier(nn.Linear), 4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_prediction_is_the_max_agreement_of_all_networks_and_epochs(kind):
    estimator, epochs = KINDS[kind]
    classifier = MaxAgreementClassifier(estimator, networks=3, epochs=epochs, random_state=0)
    classifier.fit(X, NAMES)
    labels = classifier.predict_epochs(X)
    assert labels.shape == (3, epochs, 150)
    agreed = accord.max_agreement(labels, classes=3)
    np.testing.assert_array_equal(classifier.predict(X), classifier.classes_[agreed])
    np.testing.assert_allclose(
        classifier.predict_proba(X), accord.agreement(labels, classes=3), atol=1e-12
    )
    assert classifier.score(X, NAMES) == (classifier.predict(X) == NAMES).mean()
    if kind != "ada":  # which uses no randomness
        assert (labels[0] != labels[1]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_reproducible_with_a_seed_and_any_number_of_jobs(kind):
    estimator, epochs = KINDS[kind]
    predicted = [
        MaxAgreementClassifier(estimator, networks=2, epochs=epochs, random_state=3, n_jobs=jobs)
        .fit(X, NAMES)
        .predict_epochs(X)
        for jobs in (None, 1)
    ]
    np.testing.assert_array_equal(*predicted)


def test_networks_trained_in_parallel_are_the_same():
    once, twice = (
        MaxAgreementClassifier(GaussianNB(), networks=2, epochs=2, random_state=0, n_jobs=jobs)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(
        once.fit(X, NAMES).predict_epochs(X), twice.fit(X, NAMES).predict_epochs(X)
    )


def test_every_kept_epoch_predicts_as_the_network_did_then():
    network = train_network(MLPClassifier((5,)), X, NAMES, seed=7, epochs=3, keep=None)
    twin = MLPClassifier((5,), random_state=7)
    epochs = grow_by_partial_fit(twin, X, NAMES, epochs=3, seed=7)
    for predicted, _ in zip(network.predict(X), epochs, strict=True):
        np.testing.assert_array_equal(predicted, twin.predict(X))
    for weights, expected in zip(network.states[-1].coefs_, twin.coefs_, strict=True):
        np.testing.assert_array_equal(weights, expected)  # samples came in the same order


def test_an_epoch_of_a_forest_equals_a_smaller_forest():
    forest = RandomForestClassifier(n_estimators=3)
    network = train_network(forest, X, NAMES, seed=7, epochs=None, keep=None)
    for size, predicted in enumerate(network.predict(X), start=1):
        twin = RandomForestClassifier(n_estimators=size, random_state=7).fit(X, NAMES)
        np.testing.assert_array_equal(predicted, twin.predict(X))
    first, last = network.states[0], network.states[-1]
    assert first.estimators_[0] is last.estimators_[0]  # trees are shared


def test_copies_of_a_perceptron_omit_the_optimizer():
    network = train_network(MLPClassifier((5,)), X, NAMES, seed=0, epochs=2, keep=None)
    assert [state._optimizer for state in network.states] == [None, None]
    module = ModuleClassifier(nn.Linear)
    network = train_network(module, X, NAMES, seed=0, epochs=2, keep=None)
    assert [state.optimizer_ for state in network.states] == [None, None]


@pytest.mark.parametrize(
    ("estimator", "epochs", "expected"),
    [
        (None, None, 30),
        (SGDClassifier(), None, 30),
        (SGDClassifier(), 7, 7),
        (GradientBoostingClassifier(n_estimators=6), None, 6),
        (GradientBoostingClassifier(n_estimators=6), 3, 3),
        (HistGradientBoostingClassifier(max_iter=6), 3, 3),
        (RandomForestClassifier(n_estimators=5), None, 5),
        (RandomForestClassifier(n_estimators=5), 3, 3),
    ],
)
def test_epochs_default_to_those_of_the_estimator(estimator, epochs, expected):
    classifier = MaxAgreementClassifier(estimator, networks=1, epochs=epochs).fit(X, NAMES)
    assert classifier.predict_epochs(X).shape[1] == expected


@pytest.mark.parametrize("estimator", [GaussianNB(), GradientBoostingClassifier()])
def test_kept_epochs_are_equally_spaced_ones_of_all(estimator):
    every, some = (
        MaxAgreementClassifier(estimator, networks=2, epochs=10, keep=keep, random_state=0)
        .fit(X, NAMES)
        .predict_epochs(X)
        for keep in (None, 4)
    )
    np.testing.assert_array_equal(some, every[:, [0, 3, 6, 9]])


def test_keeping_more_epochs_than_exist_keeps_all():
    classifier = MaxAgreementClassifier(GaussianNB(), networks=1, epochs=3, keep=9).fit(X, NAMES)
    assert classifier.predict_epochs(X).shape[1] == 3


def test_networks_of_different_lengths_vote():
    boosting = HistGradientBoostingClassifier(early_stopping=True, n_iter_no_change=1, max_iter=40)
    classifier = MaxAgreementClassifier(boosting, networks=4, random_state=0).fit(X, NAMES)
    assert classifier.predict(X).shape == (150,)
    with pytest.raises(UnequalNetworks, match=r"the networks kept \d+, \d+, \d+, \d+ epochs"):
        classifier.predict_epochs(X)


class Reports(ClassifierMixin, BaseEstimator):
    """Predicts the same for all samples: the last class, twice the second, the last."""

    def partial_fit(self, X, y, classes=None):
        self.calls_ = getattr(self, "calls_", -1) + 1
        self.names_ = classes
        return self

    def fit(self, X, y):
        raise AssertionError

    def predict(self, X):
        return self.names_[[2, 1, 1, 2][self.calls_]].repeat(len(X))


def test_equal_votes_go_to_the_first_class():
    classifier = MaxAgreementClassifier(Reports(), networks=2, epochs=4).fit(X, NAMES)
    np.testing.assert_array_equal(classifier.predict(X[:2]), ["dog", "dog"])
    np.testing.assert_array_equal(classifier.predict_proba(X[:1]), [[0, 0.5, 0.5]])


def test_every_random_state_inside_is_set():
    pipeline = make_pipeline(StandardScaler(), AdaBoostClassifier(SGDClassifier()))
    seeded = with_seed(clone(pipeline), 5).get_params()
    assert seeded["adaboostclassifier__random_state"] == 5
    assert seeded["adaboostclassifier__estimator__random_state"] == 5


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


def test_the_estimator_gets_the_column_names_of_frames(pd):
    frame = pd.DataFrame(X, columns=list("abcd"))
    boosting = HistGradientBoostingClassifier(max_iter=3)
    for estimator in (None, SGDClassifier(), boosting):
        classifier = MaxAgreementClassifier(estimator, networks=1, epochs=3, random_state=0)
        classifier.fit(frame, pd.Series(NAMES))
        assert classifier.feature_names_in_.tolist() == list("abcd")
        assert classifier.predict(frame).shape == (150,)
        with pytest.raises(ValueError, match="feature names should match"):
            classifier.predict(frame.rename(columns={"a": "z"}))
    network = classifier.networks_[0].estimator
    assert network.feature_names_in_.tolist() == list("abcd")


def test_frames_with_categories_reach_the_estimator(pd):
    frame = pd.DataFrame({"a": pd.Categorical(NAMES), "b": X[:, 0]})
    boosting = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    classifier = MaxAgreementClassifier(boosting, networks=1).fit(frame, NAMES)
    assert classifier.score(frame, NAMES) == 1


def test_frame_and_labels_of_different_lengths_are_refused(pd):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MaxAgreementClassifier().fit(pd.DataFrame(X), NAMES[:-1])


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array])
@pytest.mark.parametrize("estimator", [None, GradientBoostingClassifier()])
def test_sparse_and_dense_samples_give_the_same_predictions(form, estimator):
    few = np.where(np.abs(X) > 3, X, 0)
    if estimator is None:  # a dense matrix is centred, a sparse one is not
        estimator = make_pipeline(StandardScaler(with_mean=False), MLPClassifier(batch_size=32))
        options = {"networks": 2, "epochs": 5, "random_state": 0}
        thin = MaxAgreementClassifier(**options).fit(form(few), NAMES)
        thick = MaxAgreementClassifier(estimator, **options).fit(few, NAMES)
    else:
        classifier = MaxAgreementClassifier(estimator, networks=2, epochs=5, random_state=0)
        thin, thick = (clone(classifier).fit(one, NAMES) for one in (form(few), few))
    np.testing.assert_array_equal(thin.predict(form(few)), thick.predict(few))


def test_sparse_samples_are_refused_if_the_estimator_refuses_them():
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        MaxAgreementClassifier(HistGradientBoostingClassifier()).fit(sparse.csr_matrix(X), NAMES)


def test_missing_values_reach_the_estimator():
    holes = X.copy()
    holes[::7, 0] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=3)
    assert MaxAgreementClassifier(boosting, networks=1).fit(holes, NAMES).score(holes, NAMES) > 0.5
    with pytest.raises(ValueError, match="contains NaN"):
        MaxAgreementClassifier(SGDClassifier()).fit(holes, NAMES)


@pytest.mark.parametrize("estimator", [GaussianNB(), RandomForestClassifier(), None])
def test_weights_reach_the_estimator(estimator):
    weights = np.where(NAMES == "dog", 1.0, 1e-9)
    classifier = MaxAgreementClassifier(estimator, networks=1, epochs=3, random_state=0)
    share = classifier.fit(X, NAMES, sample_weight=weights).predict_proba(X)[:, 1].mean()
    assert share > 1.5 * clone(classifier).fit(X, NAMES).predict_proba(X)[:, 1].mean()


def test_weights_reach_a_boosting():
    weights = np.random.default_rng(0).random(150)
    boosting = GradientBoostingClassifier(n_estimators=3, max_depth=1, random_state=0)
    classifier = MaxAgreementClassifier(boosting, networks=1).fit(X, NAMES, sample_weight=weights)
    heavy, plain = clone(boosting).fit(X, NAMES, weights), clone(boosting).fit(X, NAMES)
    predicted = classifier.classes_[classifier.predict_epochs(X)[0, -1]]
    np.testing.assert_array_equal(predicted, heavy.predict(X))
    assert (predicted != plain.predict(X)).any()


def test_weights_that_leave_one_class_predict_that_class():
    weights = NAMES == "dog"
    classifier = MaxAgreementClassifier(networks=1, epochs=2).fit(X, NAMES, sample_weight=weights)
    assert set(classifier.predict(X)) == {"dog"}
    np.testing.assert_array_equal(classifier.predict_proba(X[:1]), [[0, 1, 0]])


def test_invalid_arguments_of_fit_are_refused():
    unweighted = Reports()
    with pytest.raises(ChoiceError, match=r"Reports takes no sample_weight\. Leave it out"):
        MaxAgreementClassifier(unweighted).fit(X, NAMES, sample_weight=np.ones(150))
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        MaxAgreementClassifier().fit(X, NAMES, weight=1)
    MaxAgreementClassifier(unweighted, networks=1, epochs=1).fit(X, NAMES, sample_weight=None)


def test_one_class_alone_is_predicted_or_refused_as_by_the_base():
    classifier = MaxAgreementClassifier(epochs=2).fit(X, ["owl"] * 150)
    assert set(classifier.predict(X)) == {"owl"}
    np.testing.assert_array_equal(classifier.predict_proba(X), np.ones((150, 1)))
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        MaxAgreementClassifier(SGDClassifier()).fit(X, ["owl"] * 150)


def test_a_class_weight_by_name_reaches_the_estimator():
    heavy = SGDClassifier(class_weight={"dog": 1e6, "owl": 1, "cat": 1})
    classifier = MaxAgreementClassifier(heavy, networks=2, epochs=3, random_state=0).fit(X, NAMES)
    plain = MaxAgreementClassifier(SGDClassifier(), networks=2, epochs=3, random_state=0)
    assert (classifier.predict(X) == "dog").sum() > (plain.fit(X, NAMES).predict(X) == "dog").sum()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"networks": 0}, "networks must be a whole number, at least 1; got 0"),
        ({"networks": 2.0}, r"networks must be a whole number, at least 1; got 2\.0"),
        ({"epochs": 0}, "epochs must be a whole number, at least 1; got 0"),
        ({"keep": 1}, "keep must be a whole number, at least 2; got 1"),
        ({"estimator": KNeighborsClassifier()}, "KNeighborsClassifier cannot be trained by epoch"),
        ({"estimator": SGDRegressor()}, "SGDRegressor is no classifier. Choose another, such as"),
        ({"estimator": IsolationForest()}, "IsolationForest is no classifier"),
        ({"estimator": GaussianNB(), "module": nn.Linear}, "an estimator or a module, not both"),
    ],
)
def test_invalid_settings_and_estimators_are_refused(options, words):
    with pytest.raises(ChoiceError, match=words):
        MaxAgreementClassifier(**options).fit(X, NAMES)


def test_the_given_estimator_is_not_fitted():
    for estimator in (GaussianNB(), GradientBoostingClassifier(), RandomForestClassifier(3)):
        before = vars(estimator).copy()
        MaxAgreementClassifier(estimator, networks=1, epochs=2).fit(X, NAMES)
        assert vars(estimator) == before
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    MaxAgreementClassifier(pipeline, networks=1, epochs=1).fit(X, NAMES)
    assert not hasattr(pipeline[0], "mean_")


def test_it_works_in_a_grid_search_and_can_be_pickled():
    classifier = MaxAgreementClassifier(GaussianNB(), networks=2, epochs=2, random_state=0)
    assert cross_val_score(classifier, X, NAMES, cv=3).mean() > 0.8
    search = GridSearchCV(classifier, {"keep": [2, None], "estimator__var_smoothing": [1e-9, 1]})
    weights = np.ones(150)
    assert search.fit(X, NAMES, sample_weight=weights).best_score_ > 0.8
    again = pickle.loads(pickle.dumps(classifier.fit(X, NAMES)))
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


# Modules of torch


def small(features, classes):
    return nn.Sequential(
        nn.Linear(features, 16), nn.BatchNorm1d(16), nn.Dropout(0.1), nn.ReLU(),
        nn.Linear(16, classes),
    )  # fmt: skip


def test_a_module_is_trained_like_an_estimator():
    classifier = MaxAgreementClassifier(module=small, networks=2, epochs=8, random_state=0)
    classifier.fit(X, NAMES)
    assert classifier.score(X, NAMES) > 0.5
    assert classifier.predict_epochs(X).shape == (2, 8, 150)


def test_fit_equals_repeated_partial_fit():
    whole = ModuleClassifier(small, epochs=3, random_state=0).fit(X, NAMES)
    parts = ModuleClassifier(small, random_state=0)
    for _ in range(3):
        parts.partial_fit(X, NAMES, classes=["cat", "dog", "owl"])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    np.testing.assert_allclose(whole.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    best = whole.classes_[whole.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(whole.predict(X), best)
    np.testing.assert_array_equal(whole.fit(X, NAMES).predict_proba(X), parts.predict_proba(X))


def test_weights_multiply_the_loss_of_a_module():
    twice = np.where(NAMES == "dog", 2, 1)
    one_batch = {"batch": 1000, "epochs": 3, "random_state": 0}
    weighted = ModuleClassifier(nn.Linear, **one_batch).fit(X, NAMES, sample_weight=twice)
    repeated = ModuleClassifier(nn.Linear, **one_batch).fit(X.repeat(twice, 0), NAMES.repeat(twice))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-4)
    for wrong in (-np.ones(150), np.zeros(150), np.ones(3)):
        with pytest.raises(ChoiceError, match="sample_weight must be 150 finite numbers"):
            ModuleClassifier(nn.Linear).fit(X, NAMES, sample_weight=wrong)
    MaxAgreementClassifier(module=nn.Linear, epochs=1).fit(X, NAMES, sample_weight=twice)


def test_a_module_needs_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ExtraMissing, match=r"ModuleClassifier requires torch.*accord\[train\]"):
        ModuleClassifier(nn.Linear).fit(X, NAMES)


class NoArguments(nn.Module):
    def __init__(self):
        super().__init__()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(4, 3), "got a Linear. Write module=lambda features, classes: …"),
        (NoArguments, "got NoArguments: too many positional arguments"),
        ("linear", "got a str"),
    ],
)
def test_a_module_itself_is_refused(module, words):
    for classifier in (MaxAgreementClassifier(module=module), ModuleClassifier(module)):
        with pytest.raises(ChoiceError, match=words):
            classifier.fit(X, NAMES)


def test_the_global_random_state_is_unchanged():
    import torch

    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    ModuleClassifier(small, epochs=1, random_state=5).fit(X, NAMES)
    assert torch.rand(1) == expected


@pytest.mark.parametrize("samples", [33, 65, 3])
def test_no_batch_holds_a_single_sample(samples):
    """Batch norm cannot train on a single sample."""
    ModuleClassifier(small, epochs=1).fit(X[:samples], NAMES[:samples])


def test_an_unknown_label_is_refused():
    classifier = ModuleClassifier(small).partial_fit(X, NAMES)
    with pytest.raises(ChoiceError, match=r"label .*'emu'\)? is not one of the classes"):
        classifier.partial_fit(X, np.where(NAMES == "owl", "emu", NAMES))


# Settings of the base, texts, rules, records


def test_balanced_classes_are_weighted_as_fit_does():
    few = np.where(NAMES == "dog")[0][:5]
    some = np.concatenate([few, np.flatnonzero(NAMES != "dog")])
    weights = {"dog": 105 / 15, "cat": 105 / 150, "owl": 105 / 150}
    base = SGDClassifier(class_weight="balanced")
    by_name, by_number = (
        MaxAgreementClassifier(one, networks=2, epochs=3, random_state=0).fit(X[some], NAMES[some])
        for one in (base, SGDClassifier(class_weight=weights))
    )
    np.testing.assert_array_equal(by_name.predict_epochs(X), by_number.predict_epochs(X))
    trained = SGDClassifier(class_weight="balanced")
    list(grow_by_partial_fit(trained, X, NAMES, epochs=2))
    assert trained.class_weight == "balanced"
    forest = RandomForestClassifier(3, class_weight="balanced")
    assert MaxAgreementClassifier(forest, networks=2).fit(X, NAMES).score(X, NAMES) > 0.8


def test_early_stopping_is_refused_where_epochs_are_trained_one_by_one():
    for base in (SGDClassifier(early_stopping=True), MLPClassifier(early_stopping=True)):
        with pytest.raises(ChoiceError, match=r"\(early_stopping=True\).*set early_stopping=False"):
            MaxAgreementClassifier(base).fit(X, NAMES)


TEXTS = ["good film", "bad film", "good plot", "bad plot"] * 10


@pytest.mark.parametrize("form", [list, np.array, lambda texts: np.array(texts, object), "Series"])
def test_texts_reach_the_first_step_of_a_pipeline(form):
    form = pytest.importorskip("pandas").Series if form == "Series" else form
    pipeline = make_pipeline(TfidfVectorizer(), SGDClassifier())
    classifier = MaxAgreementClassifier(pipeline, networks=2, epochs=3, random_state=0)
    classifier.fit(form(TEXTS), ["good", "bad"] * 20)
    assert classifier.predict(form(["a good one", "so bad"])).tolist() == ["good", "bad"]
    assert classifier.record_.given.tolist() == [1, 0] * 20
    for base in (SGDClassifier(), None):
        with pytest.raises(ChoiceError, match=r"X holds texts.*make_pipeline\(TfidfVectorizer\(\)"):
            MaxAgreementClassifier(base).fit(form(TEXTS), ["good", "bad"] * 20)


@pytest.mark.parametrize("base", [LogisticRegression(), GradientBoostingClassifier(n_estimators=4)])
def test_equal_networks_are_named_and_a_bootstrap_makes_them_differ(base):
    words = rf"all 3 networks are equal.*{type(base).__name__} learns.*bootstrap=True"
    with pytest.warns(AccordWarning, match=words):
        MaxAgreementClassifier(base, networks=3, epochs=4, random_state=0).fit(X, NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = MaxAgreementClassifier(base, networks=3, epochs=4, bootstrap=True, random_state=0)
        one, two, _ = drawn.fit(X, NAMES).predict_epochs(X)
        ExtraTrees = ExtraTreesClassifier(3)  # which predict their training samples alike
        MaxAgreementClassifier(ExtraTrees, networks=2).fit(X, NAMES)
    assert (one != two).any()


def test_a_bootstrap_keeps_every_class():
    rare = np.where(np.arange(150) == 7, "emu", NAMES)
    for seed in range(3):
        network = train_network(
            GaussianNB(), X, rare, seed=seed, epochs=1, keep=None, bootstrap=True
        )
        assert network.states[0].class_count_.tolist() == [
            (rare == name).sum() for name in np.unique(rare)
        ]


def test_a_rule_predicts_from_the_votes():
    classifier = MaxAgreementClassifier(networks=3, epochs=4, random_state=0).fit(X, NAMES)
    labels = classifier.predict_epochs(X)
    majority = clone(classifier).set_params(rule="majority").fit(X, NAMES).predict(X)
    expected = accord.max_agreement(labels[:, -1:], classes=3)
    np.testing.assert_array_equal(majority, classifier.classes_[expected])
    for rule in ("recommended", "dawid-skene", DawidSkene()):
        classifier.rule = rule
        assert classifier.fit(X, NAMES).score(X, NAMES) > 0.6
    for rule, words in (
        ("majorty", "no rule is called 'majorty'. Did you mean 'majority'"),
        ("oracle-best-epoch", "rule oracle-best-epoch needs truth, and a classifier"),
    ):
        with pytest.raises(ChoiceError, match=words):
            MaxAgreementClassifier(rule=rule).fit(X, NAMES)
    with pytest.raises(PredictionError, match=r"consensus abstains for \d+ of 150 samples"):
        classifier.set_params(rule="consensus").fit(X, NAMES).predict(X)


def test_the_record_holds_the_predictions_of_the_training_samples():
    wrong = np.arange(150) % 10 == 0
    given = np.where(wrong, np.array(["owl", "cat", "dog"])[NUMBERS - 1], NAMES)
    classifier = MaxAgreementClassifier(SGDClassifier(), networks=3, epochs=5, random_state=0)
    assert not hasattr(classifier, "record_")
    record = classifier.fit(X, given).record_
    np.testing.assert_array_equal(record.labels, classifier.predict_epochs(X))
    assert record.class_names == ("cat", "dog", "owl")
    assert record.split == "train"
    np.testing.assert_array_equal(np.array(record.class_names)[record.given], given)
    np.testing.assert_array_equal(
        classifier.classes_[record.predict().labels], classifier.predict(X)
    )
    assert wrong[classifier.audit().ranking[:10]].mean() > 0.7
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict(X), classifier.predict(X))
    with pytest.raises(AttributeError, match="a pickled classifier does not hold its training"):
        again.audit()


def test_the_logarithm_of_a_share_without_votes_is_minus_infinity():
    classifier = MaxAgreementClassifier(networks=1, epochs=2, random_state=0).fit(X, NAMES)
    shares = classifier.predict_proba(X)
    np.testing.assert_array_equal(np.exp(classifier.predict_log_proba(X)), shares)
    assert (shares == 0).any()


def test_scikit_learn_detects_sample_weights():
    assert has_fit_parameter(MaxAgreementClassifier(), "sample_weight")
    with config_context(enable_metadata_routing=True):
        requesting = MaxAgreementClassifier(GaussianNB()).set_fit_request(sample_weight=True)
        assert requesting.get_metadata_routing().fit.requests == {"sample_weight": True}


@pytest.mark.parametrize("weights", [np.ones(149), np.ones((150, 2)), 1.0])
def test_weights_of_another_number_than_the_samples_are_refused(weights):
    classifier = MaxAgreementClassifier(GaussianNB(), networks=1, epochs=1)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(150,\).*; got \("):
        classifier.fit(X, NAMES, sample_weight=weights)


def test_weights_may_be_a_list_and_the_third_argument():
    classifier = MaxAgreementClassifier(GaussianNB(), networks=1, epochs=1)
    assert classifier.fit(X, NAMES, [1.0] * 150).score(X, NAMES) > 0.8
