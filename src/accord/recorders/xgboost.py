"""Record XGBoost round by round, while it trains or afterwards."""

import json
from typing import Any

from accord.api import Recorder
from accord.errors import ChoiceError
from accord.recorders.following import RoundFollower

AnyBooster = Any  # XGBoost is loaded only where it is used
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

    def before_training(self, model: AnyBooster) -> AnyBooster:
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

    def before_iteration(self, model: AnyBooster, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        """Let training go on."""
        return False

    def after_iteration(self, model: AnyBooster, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        """Record the round if it is due, and let training go on."""
        done = model.num_boosted_rounds()
        if self._follower.wants(done):
            self._follower.record_logits(done, _scores(model, self._samples))
        return False

    def after_training(self, model: AnyBooster) -> AnyBooster:
        """Leave the booster as it is; the recorder is the caller's to close."""
        return model


def record_xgboost_rounds(
    recorder: Recorder,
    booster: AnyBooster,
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


def _scores(booster: AnyBooster, samples: Any, **options: Any) -> Any:
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


def _check_stages(booster: AnyBooster) -> None:
    kind = _settings(booster)["gradient_booster"]["name"]
    if kind != "gbtree":
        raise ChoiceError(
            f"a {kind} booster changes its earlier rounds as it trains: what it said then cannot "
            "be had afterwards. Train it with the callback XGBoostRounds."
        )


def _settings(booster: AnyBooster) -> Any:
    return json.loads(booster.save_config())["learner"]


def _as_matrix(samples: Any) -> Any:
    from xgboost import DMatrix

    if isinstance(samples, DMatrix):
        return samples
    return DMatrix(samples, enable_categorical=True)
