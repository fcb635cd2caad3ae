"""Record scikit-learn estimators: perceptrons epoch by epoch, boosting after training.

A second run trains again and leaves the records unchanged.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import accord
from accord.data.noise import symmetric_noise
from accord.sklearn import open_recorder, record_partial_fit, record_stages

images, truth = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, truth, test_size=0.4, random_state=0)
given = symmetric_noise(y, rate=0.4, classes=10, seed=0)
data_info = {"classes": np.unique(truth), "truth": y_test}

for seed in range(3):
    network = MLPClassifier(batch_size=32, random_state=seed)
    with open_recorder("perceptrons", network=seed, **data_info) as recorder:
        record_partial_fit(recorder, network, X, given, X_test, epochs=30)

for seed in range(2):
    boosting = HistGradientBoostingClassifier(max_iter=30, max_features=0.5, random_state=seed)
    boosting.fit(X, given)
    with open_recorder("boosting", network=seed, **data_info) as recorder:
        record_stages(recorder, boosting, X_test)

for path in ("perceptrons", "boosting"):
    for score in accord.open(path).score():
        print(f"{path:12} {score.rule:18} {100 * score.accuracy:.1f}")
