"""Record XGBoost and LightGBM round by round, if they are installed.

A second run trains again and leaves the records unchanged.
"""

import importlib.util

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import accord
from accord.boosting import LightGBMRounds, XGBoostRounds
from accord.data.noise import symmetric_noise
from accord.sklearn import open_recorder

images, truth = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images, truth, test_size=0.4, random_state=0)
given = symmetric_noise(y, rate=0.4, classes=10, seed=0)
data_info = {"classes": np.unique(truth), "truth": y_test}


def train_xgboost(seed: int, recorder: accord.Recorder) -> None:
    import xgboost

    rounds = XGBoostRounds(recorder, X_test)
    settings = {"objective": "multi:softprob", "num_class": 10, "max_depth": 4, "seed": seed}
    settings |= {"subsample": 0.5, "colsample_bytree": 0.5, "nthread": 2}
    xgboost.train(settings, xgboost.DMatrix(X, given), 40, callbacks=[rounds])


def train_lightgbm(seed: int, recorder: accord.Recorder) -> None:
    import lightgbm

    rounds = LightGBMRounds(recorder, X_test)
    settings = {"objective": "multiclass", "num_class": 10, "num_leaves": 15, "seed": seed}
    settings |= {"feature_fraction": 0.5, "num_threads": 2, "verbose": -1}
    lightgbm.train(settings, lightgbm.Dataset(X, given), 40, callbacks=[rounds])


for name, train in (("xgboost", train_xgboost), ("lightgbm", train_lightgbm)):
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed")
        continue
    for seed in range(2):
        with open_recorder(f"{name}-rounds", network=seed, **data_info) as recorder:
            train(seed, recorder)
    for score in accord.open(f"{name}-rounds").score():
        print(f"{name:9} {score.rule:18} {100 * score.accuracy:.1f}")
