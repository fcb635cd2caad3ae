"""Compare MaxAgreementClassifier with its own last epoch, on digits with 40 % wrong labels.

Each of the three seeds determines the split, the wrong labels and the networks.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import accord
from accord.data.noise import symmetric_noise
from accord.sklearn import MaxAgreementClassifier

SEEDS = (1, 2, 3)
images, truth = load_digits(return_X_y=True)
rows = []
for seed in SEEDS:
    X, X_test, y, y_test = train_test_split(
        images, truth, test_size=0.4, stratify=truth, random_state=seed
    )
    given = symmetric_noise(y, rate=0.4, classes=10, seed=seed)
    classifier = MaxAgreementClassifier(random_state=seed).fit(X, given)
    labels = classifier.predict_epochs(X_test)  # (network, epoch, sample)
    rows.append(
        {
            "one network, last epoch": (labels[:, -1] == y_test).mean(),
            "majority, last epoch": (
                accord.max_agreement(labels[:, -1:], classes=10) == y_test
            ).mean(),
            "max agreement": classifier.score(X_test, y_test),
        }
    )
for name in rows[0]:
    scores = 100 * np.array([row[name] for row in rows])
    print(f"{name:24} {scores.mean():.1f}  ({', '.join(f'{score:.1f}' for score in scores)})")
