"""Record from Keras 3, here with the torch backend: one callback in `fit`."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported

import keras

import accord
from accord.data import load_digits, split_digits
from accord.data.noise import symmetric_noise
from accord.keras import RecordPredictions

train, test = split_digits(load_digits(), seed=0)
given = symmetric_noise(train.labels, rate=0.4, classes=10, seed=0)
images, test_images = (one.images.reshape(-1, 64) / 16.0 for one in (train, test))

for number in range(3):
    keras.utils.set_random_seed(number)
    network = keras.Sequential(
        [
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    network.compile(
        optimizer=keras.optimizers.SGD(learning_rate=0.1, momentum=0.9),
        loss="sparse_categorical_crossentropy",
    )
    record = RecordPredictions(
        "keras-record", test_images, network=number, classes=10, truth=test.labels
    )
    network.fit(images, given, batch_size=32, epochs=8, verbose=0, callbacks=[record])

for score in accord.open("keras-record").score():
    print(f"{score.rule:18} {100 * score.accuracy:.1f}")
