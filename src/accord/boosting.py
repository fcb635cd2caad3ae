"""Record XGBoost and LightGBM: boosting rounds are epochs."""

from typing import Any

from accord.api import Recorder
from accord.errors import ChoiceError
from accord.recorders.lightgbm import LightGBMRounds, record_lightgbm_rounds
from accord.recorders.xgboost import XGBoostRounds, record_xgboost_rounds

__all__ = ["LightGBMRounds", "XGBoostRounds", "record_rounds"]


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
