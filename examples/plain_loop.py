"""Record your own training loop, here logistic regression by gradient descent in numpy.

A second run finds the record complete and adds nothing.
"""

import numpy as np

import accord
from accord.data import load_digits, split_digits
from accord.data.noise import symmetric_noise

EPOCHS, NETWORKS = 30, 3
train, test = split_digits(load_digits(), seed=0)
given = symmetric_noise(train.labels, rate=0.4, classes=10, seed=0)
images = train.images.reshape(len(given), -1) / 16.0
test_images = test.images.reshape(len(test.labels), -1) / 16.0

for number in range(NETWORKS):
    generator = np.random.default_rng(number)
    weights = generator.normal(0, 0.1, (64, 10))
    with accord.Recorder(
        "plain-loop-record",
        network=number,
        samples=len(test.labels),
        classes=10,
        truth=test.labels,
    ) as recorder:
        for epoch in range(EPOCHS):
            for batch in np.array_split(generator.permutation(len(given)), 40):
                scores = images[batch] @ weights
                powers = np.exp(scores - scores.max(axis=1, keepdims=True))
                gap = powers / powers.sum(axis=1, keepdims=True) - np.eye(10)[given[batch]]
                weights -= 0.5 * images[batch].T @ gap / len(batch)
            if epoch >= recorder.epochs:  # after a restart, only missing epochs
                recorder.record(logits=test_images @ weights)

for score in accord.open("plain-loop-record").score():
    print(f"{score.rule:18} {100 * score.accuracy:.1f}")
