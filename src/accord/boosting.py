"""Integration with XGBoost and LightGBM."""

import json
import re
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.round_recorder import RoundRecorder, packages_of
from accord.errors import ChoiceError, PredictionError, missing_extra

__all__ = ["LightGBMRounds", "XGBoostRounds", "record_rounds"]


AnyBooster = Any  # XGBoost and LightGBM are imported only where they are used


class XGBoostRounds:
    """XGBoost callback that records predictions of `X` after each round.

    Use `xgboost.train(…, callbacks=[XGBoostRounds(recorder, X)])` or
    `XGBClassifier(callbacks=[…])`. Rounds are epochs. XGBoost caches the scores of `X` between
    rounds, so that late rounds cost no more than early ones. If training starts again, only the
    missing rounds are written.

    Args:
        recorder: used for this network only.
        X: the samples to predict, or a `DMatrix` of them.
        every: rounds per row.
        classes: the classes that the network knows, in the order of its columns, by default all
            classes of the record.
    """

    def __init__(
        self, recorder: Recorder, X: Any, *, every: int = 1, classes: object = None
    ) -> None:
        try:
            from xgboost.callback import TrainingCallback
        except ImportError as error:
            raise missing_extra(
                "XGBoostRounds", "xgboost", extra="boosting", cause=error
            ) from error

        TrainingCallback.register(XGBoostRounds)  # XGBoost requires a subclass
        self._rounds = RoundRecorder(recorder, every=every, classes=classes)
        self._samples = _as_matrix(X)
        self._started = False

    def before_training(self, model: AnyBooster) -> AnyBooster:
        """Check that the callback is used for one training only."""
        from xgboost import Booster

        if self._started:
            raise ChoiceError(
                "this callback has recorded a training; create a new one, with a new recorder, "
                "for each network"
            )
        if not isinstance(model, Booster):
            raise ChoiceError("xgboost.cv trains several networks; record each one separately")
        self._started = True
        return model

    def before_iteration(self, model: AnyBooster, epoch: int, evals_log: Any) -> bool:
        """Do nothing before a round."""
        return False

    def after_iteration(self, model: AnyBooster, epoch: int, evals_log: Any) -> bool:
        """Record the round if it is due."""
        done = model.num_boosted_rounds()
        self._rounds.record(done, lambda: _scores(model, self._samples), logits=True)
        return False

    def after_training(self, model: AnyBooster) -> AnyBooster:
        """Return the booster unchanged."""
        return model


def _record_xgboost_rounds(
    recorder: Recorder, booster: AnyBooster, samples: Any, *, every: int, classes: object
) -> None:
    if hasattr(booster, "get_booster"):
        classes = booster.classes_ if classes is None else classes
        booster = booster.get_booster()
    kind = _settings(booster)["gradient_booster"]["name"]
    if kind != "gbtree":
        raise ChoiceError(
            f"a {kind} booster changes earlier rounds while it trains, so their predictions "
            "are lost. Train it with the callback XGBoostRounds."
        )
    rounds = RoundRecorder(recorder, every=every, classes=classes)
    rounds.check_due(booster.num_boosted_rounds())
    samples = _as_matrix(samples)
    for done in range(1, booster.num_boosted_rounds() + 1):
        rounds.record(
            done, partial(_scores, booster, samples, iteration_range=(0, done)), logits=True
        )


def _scores(booster: AnyBooster, samples: Any, **options: Any) -> Any:
    scores = booster.predict(samples, output_margin=True, **options)
    if scores.ndim == 1:
        objective = _settings(booster)["objective"]["name"]
        # For these, one score per sample belongs to the second of two classes.
        if not objective.startswith(("binary:", "reg:logistic")):
            raise ChoiceError(
                f"with objective {objective!r} one score per sample does not determine a class. "
                "For two classes train with binary:logistic, or pass labels to recorder.record"
            )
    return scores


def _settings(booster: AnyBooster) -> Any:
    return json.loads(booster.save_config())["learner"]


def _as_matrix(samples: Any) -> Any:
    from xgboost import DMatrix

    return samples if isinstance(samples, DMatrix) else DMatrix(samples, enable_categorical=True)


class LightGBMRounds:
    """LightGBM callback that records predictions of `X` after each round.

    Use `lightgbm.train(…, callbacks=[LightGBMRounds(recorder, X)])` or
    `LGBMClassifier().fit(…, callbacks=[…])`. Rounds are epochs. Each row evaluates only the
    trees added since the last one. If training starts again, only the missing rounds are written.

    Arguments are those of `XGBoostRounds`; `X` is an array or a frame. `LGBMClassifier` sorts its
    labels: `classes=np.unique(y)`.
    """

    def __init__(
        self, recorder: Recorder, X: Any, *, every: int = 1, classes: object = None
    ) -> None:
        names = list(recorder.sample_info.class_names or ())
        if classes is None and names != sorted(names):
            raise ChoiceError(
                f"the record's classes are {', '.join(names[:5])} …, not in sorted order, and "
                "LGBMClassifier sorts them. List the classes of the network's columns: "
                "classes=np.unique(y) for LGBMClassifier, classes=range(n) for integer labels."
            )
        self._rounds = RoundRecorder(recorder, every=every, classes=classes)
        self._samples = X
        self._scores: RunningScores | None = None

    def __call__(self, env: Any) -> None:
        """Record the round if it is due."""
        from lightgbm import Booster

        if not isinstance(env.model, Booster):
            raise ChoiceError("lightgbm.cv trains several networks; record each one separately")
        if self._scores is None:
            self._scores = RunningScores(env.model, self._samples)
            _check_probabilities(self._scores, self._rounds.recorder)
        if self._scores.booster is not env.model:
            raise ChoiceError(
                "this callback has recorded a training; create a new one, with a new recorder, "
                "for each network"
            )
        done = env.iteration + 1
        after = env.model.current_iteration()
        self._rounds.record(done, partial(self._scores.after, after), logits=True)


def _record_lightgbm_rounds(
    recorder: Recorder, booster: AnyBooster, samples: Any, *, every: int, classes: object
) -> None:
    if hasattr(booster, "booster_"):
        classes = booster.classes_ if classes is None else classes
        booster = booster.booster_
    scores = RunningScores(booster, samples)
    if scores.dart:
        raise ChoiceError(
            "a dart booster changes earlier trees while it trains, so their predictions are lost. "
            "Train it with the callback LightGBMRounds."
        )
    rounds = RoundRecorder(recorder, every=every, classes=classes)
    rounds.check_due(booster.current_iteration())
    _check_probabilities(scores, recorder)
    for done in range(1, booster.current_iteration() + 1):
        rounds.record(done, partial(scores.after, done), logits=True)


class RunningScores:
    """Cumulative logits of a booster."""

    def __init__(self, booster: AnyBooster, samples: Any) -> None:
        self.booster = booster
        text = booster.model_to_string(num_iteration=1)
        objective = re.search(r"^objective=(\S+)", text, re.M)
        sigmoid = re.search(r"^objective=.*sigmoid:(\S+)", text, re.M)
        self.objective = objective[1] if objective else "custom"
        self.dart = bool(re.search(r"^\[boosting: dart\]", text, re.M))
        self._sigmoid = float(sigmoid[1]) if sigmoid else 1.0
        self._averages = bool(re.search(r"^average_output$", text, re.M))
        self._samples = samples
        self._done = 0
        self._sum: NDArray[np.float64] | None = None

    def after(self, rounds: int) -> NDArray[np.float64]:
        """Compute the logits, (sample,) or (sample, class), after `rounds` rounds."""
        if self.dart:  # earlier trees change, so nothing can be summed
            self._sum = self._predict(0, rounds)
        elif rounds > self._done:  # equal once no tree can be split any more
            new = self._predict(self._done, rounds - self._done)
            self._sum = new if self._sum is None else self._sum + new
        self._done = rounds
        assert self._sum is not None
        if self._sum.ndim == 1 and self.objective not in ("binary", "cross_entropy"):
            raise ChoiceError(
                f"with objective {self.objective!r} one score per sample does not determine a "
                "class. For two classes train with binary, or pass labels to recorder.record"
            )
        return self._sum * self._sigmoid / (rounds if self._averages else 1)

    def _predict(self, start: int, rounds: int) -> NDArray[np.float64]:
        return np.asarray(
            self.booster.predict(
                self._samples, raw_score=True, start_iteration=start, num_iteration=rounds
            )
        )


def _check_probabilities(scores: RunningScores, recorder: Recorder) -> None:
    if recorder.keeps_probabilities and scores.objective == "multiclassova":
        raise PredictionError(
            "the probabilities of multiclassova do not sum to 1. Open the recorder with "
            "probabilities=False, or train with objective multiclass."
        )


def record_rounds(
    recorder: Recorder, booster: Any, X: Any, *, every: int = 1, classes: object = None
) -> None:
    """Record the predictions of a trained booster after each round.

    For boosters that were trained without a callback. Called again on the same record, with a
    new recorder, it writes only the missing rounds.

    Args:
        recorder: used for this network only.
        booster: an XGBoost or LightGBM `Booster`, `XGBClassifier` or `LGBMClassifier`.
        X: the samples to predict.
        every: rounds per row.
        classes: the classes that the network knows, in the order of its columns, by default the
            estimator's, or all classes of the record for a `Booster`.

    Raises:
        ChoiceError: not a classifier, or one whose earlier rounds change while it trains (dart,
            gblinear): those require a callback.
    """
    packages = packages_of(booster)
    if "xgboost" in packages:
        _record_xgboost_rounds(recorder, booster, X, every=every, classes=classes)
    elif "lightgbm" in packages:
        _record_lightgbm_rounds(recorder, booster, X, every=every, classes=classes)
    else:
        raise ChoiceError(
            f"a booster of XGBoost or LightGBM was expected; got {type(booster).__name__}. "
            "For estimators of scikit-learn: accord.sklearn.record_stages"
        )
