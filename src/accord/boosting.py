"""Record XGBoost and LightGBM: boosting rounds are epochs."""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.boosting_rounds import RoundFollower
from accord.errors import ChoiceError, PredictionError

__all__ = ["LightGBMRounds", "XGBoostRounds", "record_rounds"]


AnyXGBoostBooster = Any  # XGBoost is loaded only where it is used
# What a 1-D score means is known for these; with several classes the largest score wins.
TWO_CLASSES = ("binary:", "reg:logistic")


class XGBoostRounds:
    """Record what a booster says of `X` after each of its rounds, while it trains.

    A callback: `xgboost.train(…, callbacks=[XGBoostRounds(recorder, X)])`, or
    `XGBClassifier(callbacks=[…])`. Rounds are epochs. XGBoost keeps the scores of `X` from
    round to round, so that a round costs no more the later it comes. Started again, it writes
    only the rounds that are missing.

    Args:
        recorder: where to write; for this network alone.
        X: the samples to predict, or a `DMatrix` of them.
        every: how many rounds make one row.
        classes: the record's classes that the network knows, in the order of its columns; by
            default all of them.
    """

    def __init__(
        self,
        recorder: Recorder,
        X: Any,  # noqa: N803
        *,
        every: int = 1,
        classes: object = None,
    ) -> None:
        from xgboost.callback import TrainingCallback

        TrainingCallback.register(XGBoostRounds)  # xgboost asks for its own kind
        self._follower = RoundFollower(recorder, every=every, classes=classes)
        self._samples = _as_matrix(X)
        self._started = False

    def before_training(self, model: AnyXGBoostBooster) -> AnyXGBoostBooster:
        """Refuse a second training: its rounds would pass for recorded ones."""
        from xgboost import Booster

        if self._started:
            raise ChoiceError(
                "this callback has followed a training already; make a new one, with a recorder "
                "of its own, for each network"
            )
        if not isinstance(model, Booster):
            raise ChoiceError("xgboost.cv trains several networks at once; record each by itself")
        self._started = True
        return model

    def before_iteration(self, model: AnyXGBoostBooster, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        """Let training go on."""
        return False

    def after_iteration(self, model: AnyXGBoostBooster, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        """Record the round if it is due, and let training go on."""
        done = model.num_boosted_rounds()
        if self._follower.wants(done):
            self._follower.record_logits(done, _scores(model, self._samples))
        return False

    def after_training(self, model: AnyXGBoostBooster) -> AnyXGBoostBooster:
        """Leave the booster as it is; the recorder is the caller's to close."""
        return model


def record_xgboost_rounds(
    recorder: Recorder,
    booster: AnyXGBoostBooster,
    X: Any,  # noqa: N803
    *,
    every: int = 1,
    classes: object = None,
) -> None:
    """Record what a trained booster or `XGBClassifier` said of `X` after each round."""
    if hasattr(booster, "get_booster"):
        classes = booster.classes_ if classes is None else classes
        booster = booster.get_booster()
    _check_stages(booster)
    follower = RoundFollower(recorder, every=every, classes=classes)
    samples = _as_matrix(X)
    for done in range(1, booster.num_boosted_rounds() + 1):
        if follower.wants(done):
            scores = _scores(booster, samples, iteration_range=(0, done))
            follower.record_logits(done, scores)


def _scores(booster: AnyXGBoostBooster, samples: Any, **options: Any) -> Any:
    scores = booster.predict(samples, output_margin=True, **options)
    if scores.ndim == 1:
        objective = _settings(booster)["objective"]["name"]
        if not objective.startswith(TWO_CLASSES):
            raise ChoiceError(
                f"with objective {objective!r} one score per sample tells no class. For two "
                "classes train with binary:logistic, or record labels of your own by "
                "recorder.record"
            )
    return scores


def _check_stages(booster: AnyXGBoostBooster) -> None:
    kind = _settings(booster)["gradient_booster"]["name"]
    if kind != "gbtree":
        raise ChoiceError(
            f"a {kind} booster changes its earlier rounds as it trains: what it said then cannot "
            "be had afterwards. Train it with the callback XGBoostRounds."
        )


def _settings(booster: AnyXGBoostBooster) -> Any:
    return json.loads(booster.save_config())["learner"]


def _as_matrix(samples: Any) -> Any:
    from xgboost import DMatrix

    if isinstance(samples, DMatrix):
        return samples
    return DMatrix(samples, enable_categorical=True)


AnyLightGBMBooster = Any  # LightGBM is loaded only where it is used


class LightGBMRounds:
    """Record what a booster says of `X` after each of its rounds, while it trains.

    A callback: `lightgbm.train(…, callbacks=[LightGBMRounds(recorder, X)])`, or
    `LGBMClassifier().fit(…, callbacks=[…])`. Rounds are epochs. Only the trees that are new
    since the last row are asked. Started again, it writes only the rounds that are missing.

    Args:
        recorder: where to write; for this network alone.
        X: the samples to predict, as an array or a frame.
        every: how many rounds make one row.
        classes: the record's classes that the network knows, in the order of its columns; by
            default all of them. `LGBMClassifier` sorts its labels: `classes=np.unique(y)`.
    """

    def __init__(
        self,
        recorder: Recorder,
        X: Any,  # noqa: N803
        *,
        every: int = 1,
        classes: object = None,
    ) -> None:
        if classes is None:
            _check_order(recorder)
        self._follower = RoundFollower(recorder, every=every, classes=classes)
        self._samples = X
        self._scores: Scores | None = None

    def __call__(self, env: Any) -> None:
        """Record the round if it is due."""
        from lightgbm import Booster

        if not isinstance(env.model, Booster):
            raise ChoiceError("lightgbm.cv trains several networks at once; record each by itself")
        if self._scores is None:
            self._scores = Scores(env.model, self._samples)
        if self._scores.booster is not env.model:
            raise ChoiceError(
                "this callback has followed a training already; make a new one, with a recorder "
                "of its own, for each network"
            )
        done = env.iteration + 1
        if self._follower.wants(done):
            _check_kept(self._scores, self._follower.recorder)
            self._follower.record_logits(done, self._scores.after(env.model.current_iteration()))


def record_lightgbm_rounds(
    recorder: Recorder,
    booster: AnyLightGBMBooster,
    X: Any,  # noqa: N803
    *,
    every: int = 1,
    classes: object = None,
) -> None:
    """Record what a trained booster or `LGBMClassifier` said of `X` after each round."""
    if hasattr(booster, "booster_"):
        classes = booster.classes_ if classes is None else classes
        booster = booster.booster_
    scores = Scores(booster, X)
    if scores.kind.dart:
        raise ChoiceError(
            "a dart booster changes its earlier trees as it trains: what it said then cannot be "
            "had afterwards. Train it with the callback LightGBMRounds."
        )
    follower = RoundFollower(recorder, every=every, classes=classes)
    _check_kept(scores, recorder)
    for done in range(1, booster.current_iteration() + 1):
        if follower.wants(done):
            follower.record_logits(done, scores.after(done))


@dataclass(frozen=True)
class Kind:
    """What a booster says of itself."""

    objective: str
    sigmoid: float
    dart: bool
    averages: bool


def read_kind(text: str) -> Kind:
    r"""Read what a booster is from the text it is saved as.

    >>> read_kind("objective=binary sigmoid:2\naverage_output\n[boosting: rf]\n")
    Kind(objective='binary', sigmoid=2.0, dart=False, averages=True)
    """
    objective = re.search(r"^objective=(\S+)", text, re.M)
    sigmoid = re.search(r"^objective=.*sigmoid:(\S+)", text, re.M)
    return Kind(
        objective=objective[1] if objective else "of your own",
        sigmoid=float(sigmoid[1]) if sigmoid else 1.0,
        dart=bool(re.search(r"^\[boosting: dart\]", text, re.M)),
        averages=bool(re.search(r"^average_output$", text, re.M)),
    )


class Scores:
    """The scores before the softmax, added up tree by tree as rounds pass."""

    def __init__(self, booster: AnyLightGBMBooster, samples: Any) -> None:
        self.booster = booster
        self.kind = read_kind(booster.model_to_string(num_iteration=1))
        self._samples = samples
        self._done = 0
        self._sum: NDArray[np.float64] | None = None

    def after(self, rounds: int) -> NDArray[np.float64]:
        """Return the logits, (sample,) or (sample, class), after so many rounds."""
        if self.kind.dart:  # earlier trees change: nothing can be added up
            self._sum = self._ask(0, rounds)
        elif rounds > self._done:  # not so once no tree can be split any more
            new = self._ask(self._done, rounds - self._done)
            self._sum = new if self._sum is None else self._sum + new
        self._done = rounds
        assert self._sum is not None
        self._check_classes(self._sum)
        return self._sum * self.kind.sigmoid / (rounds if self.kind.averages else 1)

    def _ask(self, start: int, rounds: int) -> NDArray[np.float64]:
        return np.asarray(
            self.booster.predict(
                self._samples, raw_score=True, start_iteration=start, num_iteration=rounds
            )
        )

    def _check_classes(self, scores: NDArray[np.float64]) -> None:
        if scores.ndim == 1 and self.kind.objective not in ("binary", "cross_entropy"):
            raise ChoiceError(
                f"with objective {self.kind.objective!r} one score per sample tells no class. For "
                "two classes train with binary, or record labels of your own by recorder.record"
            )


def _check_kept(scores: Scores, recorder: Recorder) -> None:
    if recorder.keeps_probabilities and scores.kind.objective == "multiclassova":
        raise PredictionError(
            "multiclassova gives no probabilities that add up to 1. Open the recorder with "
            "probabilities=False, or train with objective multiclass."
        )


def _check_order(recorder: Recorder) -> None:
    names = list(recorder.sample_info.class_names or ())
    if names != sorted(names):
        raise ChoiceError(
            f"the record's classes are {', '.join(names[:5])} …, not in sorted order, and "
            "LGBMClassifier sorts them. Say what the network's columns are: classes=np.unique(y) "
            "for LGBMClassifier, classes=range(n) for labels that are numbers."
        )


def record_rounds(
    recorder: Recorder,
    booster: Any,
    X: Any,  # noqa: N803
    *,
    every: int = 1,
    classes: object = None,
) -> None:
    """Record what a trained booster said of `X` after each of its rounds.

    For boosters that were trained without a callback. Called again on the same record, with a
    new recorder, it writes only what is missing.

    Args:
        recorder: where to write; for this network alone.
        booster: an XGBoost or LightGBM `Booster`, `XGBClassifier` or `LGBMClassifier`.
        X: the samples to predict.
        every: how many rounds make one row.
        classes: the record's classes that the network knows, in the order of its columns; by
            default the estimator's own, or all of them for a `Booster`.

    Raises:
        ChoiceError: not a classifier, or one whose earlier rounds change as it trains (dart,
            gblinear): those need a callback.
    """
    homes = {kind.__module__.partition(".")[0] for kind in type(booster).__mro__}
    if "xgboost" in homes:
        record_xgboost_rounds(recorder, booster, X, every=every, classes=classes)
    elif "lightgbm" in homes:
        record_lightgbm_rounds(recorder, booster, X, every=every, classes=classes)
    else:
        raise ChoiceError(
            f"a booster of XGBoost or LightGBM is wanted; got {type(booster).__name__}. "
            "scikit-learn's own: accord.sklearn.record_stages"
        )
