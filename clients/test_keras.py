"""Record with the real Keras 3, on torch."""

import os

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported
keras = pytest.importorskip("keras", reason="pip install 'accord[keras]'")

import torch  # noqa: E402

import accord  # noqa: E402
from accord.errors import ChoiceError, PredictionError, RecordBusy, RecordError  # noqa: E402
from accord.keras import RecordPredictions  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Keras's own

SAMPLES, CLASSES, STEPS = 30, 3, 4
generator = np.random.default_rng(0)
TRAIN, TEST = generator.normal(size=(2, SAMPLES, 5)).astype("float32")


def truth(inputs, classes=CLASSES):
    return inputs[:, :classes].argmax(1)


def build(last=CLASSES, activation="softmax"):
    keras.utils.set_random_seed(0)
    network = keras.Sequential(
        [
            keras.layers.Dense(16, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(last, activation=activation),
        ]
    )
    binary = last == 1
    losses = (
        keras.losses.BinaryCrossentropy if binary else keras.losses.SparseCategoricalCrossentropy
    )
    network.compile(optimizer="sgd", loss=losses(from_logits=activation == "linear"))
    network.build((None, 5))
    return network


class Witness(keras.callbacks.Callback):
    """What the network returns at the end of each epoch, computed directly."""

    def __init__(self):
        super().__init__()
        self.outputs = []

    def on_epoch_end(self, epoch, logs=None):
        self.outputs.append(np.asarray(self.model.predict(TEST, verbose=0)))


def fit(callbacks, *, network=None, classes=CLASSES, epochs=3, **options):
    network = network or build()
    network.fit(
        TRAIN,
        truth(TRAIN, classes),
        batch_size=8,
        epochs=epochs,
        verbose=0,
        callbacks=callbacks,
        **options,
    )
    return network


def record_to(path, inputs=TEST, **options):
    return RecordPredictions(path, inputs, **{"network": 0, "classes": CLASSES, **options})


def rows(path):
    return np.asarray(accord.open(path).labels)[0]


@pytest.mark.parametrize("activation", ["softmax", "linear"])
def test_every_epoch_is_recorded_as_the_network_was(tmp_path, activation):
    witness = Witness()
    options = {"truth": truth(TEST), "probabilities": True, "batch": 7}
    fit([record_to(tmp_path, **options), witness], network=build(activation=activation))
    record = accord.open(tmp_path)
    assert record.progress == (1.0, 2.0, 3.0)
    outputs = torch.tensor(np.stack(witness.outputs))
    np.testing.assert_array_equal(rows(tmp_path), outputs.argmax(2))
    expected = outputs if activation == "softmax" else outputs.softmax(2)
    np.testing.assert_allclose(np.asarray(record.probabilities)[0], expected, atol=1e-3)
    assert set(record.networks_info[0].metrics[0]) == {"loss"}


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("activation", ["sigmoid", "linear"])
def test_one_column_means_class_1_of_two(tmp_path, activation, probabilities):
    witness = Witness()
    callback = record_to(tmp_path, classes=2, probabilities=probabilities)
    fit([callback, witness], network=build(1, activation), classes=2)
    threshold = 0.5 if activation == "sigmoid" else 0.0
    columns = np.stack(witness.outputs)[:, :, 0]
    np.testing.assert_array_equal(rows(tmp_path), columns > threshold)
    assert len(set(rows(tmp_path).ravel())) == 2
    if probabilities:
        expected = columns if activation == "sigmoid" else 1 / (1 + np.exp(-columns))
        found = np.asarray(accord.open(tmp_path).probabilities)[0, :, :, 1]
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_an_unknown_activation_requires_the_argument_logits(tmp_path):
    with pytest.raises(ChoiceError, match=r"logits or probabilities.*is a Dense.*Set logits="):
        fit([record_to(tmp_path, classes=2)], network=build(1, "tanh"), classes=2)
    fit([record_to(tmp_path, classes=2, logits=True)], network=build(1, "tanh"), classes=2)
    assert accord.open(tmp_path).epochs == 3


def test_a_softmax_layer_is_known(tmp_path):
    network = build(activation="linear")
    whole = keras.Sequential([*network.layers, keras.layers.Softmax()])
    whole.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
    witness = Witness()
    fit([record_to(tmp_path, probabilities=True), witness], network=whole)
    found = np.asarray(accord.open(tmp_path).probabilities)[0]
    np.testing.assert_allclose(found, witness.outputs, atol=1e-3)


def test_parts_and_multiples_of_an_epoch_are_recorded(tmp_path):
    witness = Witness()
    fit([record_to(tmp_path / "parts", every=0.25), record_to(tmp_path / "two", every=2), witness])
    assert accord.open(tmp_path / "parts").progress == tuple(n / 4 for n in range(1, 13))
    labels = np.stack(witness.outputs).argmax(2)
    np.testing.assert_array_equal(rows(tmp_path / "parts")[3::4], labels)
    np.testing.assert_array_equal(rows(tmp_path / "two"), labels[1:])


@pytest.mark.parametrize("first", [True, False])
def test_the_last_epoch_is_recorded_after_early_stopping(tmp_path, first):
    witness, ours = Witness(), record_to(tmp_path, every=2)
    stop = keras.callbacks.EarlyStopping("loss", mode="max", patience=2, restore_best_weights=True)
    fit([ours, witness, stop] if first else [stop, ours, witness], epochs=9)
    labels = np.stack(witness.outputs).argmax(2)
    assert accord.open(tmp_path).progress == (2, 3)
    np.testing.assert_array_equal(rows(tmp_path), labels[1:])


@pytest.mark.parametrize("every", [0.25, 1])
def test_recording_does_not_change_what_is_trained(tmp_path, every):
    found = fit([record_to(tmp_path, every=every)]).get_weights()
    for mine, value in zip(found, fit([]).get_weights(), strict=True):
        np.testing.assert_array_equal(mine, value)


def test_several_inputs_and_outputs(tmp_path):
    left, right = keras.Input((2,), name="left"), keras.Input((3,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    scores = keras.layers.Dense(CLASSES, name="scores")(joined)
    network = keras.Model({"left": left, "right": right}, [scores, joined])
    network.compile(
        optimizer="sgd",
        loss=[keras.losses.SparseCategoricalCrossentropy(from_logits=True), "mse"],
    )

    def halves(inputs):
        return {"left": inputs[:, :2], "right": inputs[:, 2:]}

    def run(callback):
        network.fit(halves(TRAIN), [truth(TRAIN), TRAIN], epochs=1, verbose=0, callbacks=[callback])

    with pytest.raises(ChoiceError, match=r"returns 2 outputs; select the scores.*forward="):
        run(record_to(tmp_path, halves(TEST)))

    def forward(network, inputs):
        return network.predict_on_batch(inputs)[0]

    run(record_to(tmp_path, halves(TEST), forward=forward))
    expected = network.predict(halves(TEST), verbose=0)[0].argmax(1)
    np.testing.assert_array_equal(rows(tmp_path)[0], expected)


def test_resumed_training_has_every_row_once(tmp_path, caplog):
    path = tmp_path / "record"
    network = fit([record_to(path)], epochs=2)
    before = rows(path)
    witness = Witness()
    fit([record_to(path), witness], network=network, epochs=4, initial_epoch=1)
    assert accord.open(path).progress == (1, 2, 3, 4)
    np.testing.assert_array_equal(rows(path)[:2], before)
    np.testing.assert_array_equal(rows(path)[2:], np.stack(witness.outputs).argmax(2)[1:])
    assert "already holds" not in caplog.text
    fit([record_to(path)], epochs=1)
    assert "network 0 already holds 4 epochs; training starts from scratch" in caplog.text
    with pytest.raises(RecordError, match=r"holds 4 .*from progress 6: the row at progress 5 is"):
        fit([record_to(path)], network=network, epochs=7, initial_epoch=6)
    fit([record_to(path)], network=network, epochs=5, initial_epoch=4)  # the record was closed
    assert accord.open(path).epochs == 5


def test_a_training_restored_by_keras_has_every_row_once(tmp_path):
    path = tmp_path / "record"

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    def restoring():
        return keras.callbacks.BackupAndRestore(tmp_path / "backup")

    first = record_to(path)
    with pytest.raises(KeyboardInterrupt):
        fit([first, restoring(), Stop()])
    with pytest.raises(RecordBusy, match=r"did an earlier training end with an error"):
        fit([record_to(path)])
    first.close()
    fit([record_to(path), restoring()])
    assert accord.open(path).progress == (1, 2, 3)


def test_attaching_it_twice_is_refused(tmp_path):
    callback = record_to(tmp_path)
    with pytest.raises(ChoiceError, match="for network 0 is attached twice; attach it once"):
        fit([callback, callback])
    fit([callback], epochs=1)  # opens it again
    with pytest.raises(RecordBusy, match=r"another recorder holds.*RecordPredictions attached"):
        fit([callback, record_to(tmp_path)])


def test_the_end_of_training_and_close_release_the_record(tmp_path):
    callback = record_to(tmp_path)
    fit([callback], epochs=1)
    with accord.Recorder(tmp_path, network=0, samples=SAMPLES, classes=CLASSES) as other:
        assert other.epochs == 1
    callback._recorder.open()
    callback.close()
    accord.Recorder(tmp_path, network=0, samples=SAMPLES, classes=CLASSES).close()


def test_a_network_that_diverges_is_named_and_its_epochs_are_kept(tmp_path):
    def forward(network, inputs):
        scale = float("nan") if network.optimizer.iterations.numpy() > STEPS else 1
        return network.predict_on_batch(inputs) * scale

    with pytest.raises(
        PredictionError, match=r"network 0, epoch 1 \(progress 2\): .*NaN.*30 of 30 samples"
    ):
        fit([record_to(tmp_path, forward=forward)])
    fit([record_to(tmp_path)], epochs=2)
    assert accord.open(tmp_path).epochs == 2


def test_epochs_of_unknown_length_are_recorded_whole(tmp_path):
    def batches():
        while True:
            yield TRAIN, truth(TRAIN)

    callback = record_to(tmp_path, every=0.5)
    callback.set_params({"steps": None})
    with pytest.raises(ChoiceError, match=r"every=0\.5 needs epochs of known length.*steps_per"):
        callback.on_train_begin()
    callback = record_to(tmp_path / "record")
    build().fit(batches(), steps_per_epoch=2, epochs=2, verbose=0, callbacks=[callback])
    assert accord.open(tmp_path / "record").epochs == 2


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "got dict of $"),
        ("text", "got str of str"),
        ([TEST, "text"], "got list of ndarray, str"),
        ([TEST, TEST[1:]], r"same length; got \[29, 30\]"),
    ],
)
def test_inputs_that_are_not_arrays_are_refused(tmp_path, inputs, message):
    with pytest.raises(ChoiceError, match=message):
        record_to(tmp_path, inputs)


# Batches as evaluation data


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        rows = slice(8 * number, 8 * number + 8)
        return TEST[rows], truth(TEST)[rows]


class Tensor:
    """A tensor of TensorFlow, as far as numpy sees it."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class TensorFlowDataset:
    """The protocol of a tf.data.Dataset: iterated anew at every epoch, with a cardinality."""

    def __init__(self, *, cardinality=4, shuffle=False):
        self.size, self.shuffle = cardinality, shuffle

    def cardinality(self):
        return Tensor(np.int64(self.size)).values

    def __iter__(self):
        order = generator.permutation(SAMPLES) if self.shuffle else np.arange(SAMPLES)
        for rows in np.array_split(order, 4):
            yield Tensor(TEST[rows]), Tensor(truth(TEST)[rows])


def loader(**options):
    tensors = torch.utils.data.TensorDataset(torch.tensor(TEST), torch.tensor(truth(TEST)))
    return torch.utils.data.DataLoader(tensors, batch_size=8, **options)


@pytest.mark.parametrize("inputs", [Batches(), TensorFlowDataset(), loader()])
def test_batches_are_predicted_like_an_array(tmp_path, inputs):
    fit([record_to(tmp_path / "batches", inputs), record_to(tmp_path / "array")])
    np.testing.assert_array_equal(rows(tmp_path / "batches"), rows(tmp_path / "array"))


def test_batches_in_another_order_are_refused(tmp_path):
    with pytest.raises(ChoiceError, match=r"any order \(RandomSampler\).*shuffle=False"):
        record_to(tmp_path, loader(shuffle=True))
    with pytest.raises(ChoiceError, match=r"drops the last 6 of 30 .*drop_last=False"):
        record_to(tmp_path, loader(drop_last=True))
    with pytest.raises(PredictionError, match=r"another order than at the last.*shuffle=False"):
        fit([record_to(tmp_path, TensorFlowDataset(shuffle=True))])
    for endless in (TensorFlowDataset(cardinality=-1), iter([TEST])):
        with pytest.raises(ChoiceError, match=r"infinite or can be read only once.*without repeat"):
            record_to(tmp_path, endless)
    with pytest.raises(PredictionError, match="the evaluation data gave no batch"):
        fit([record_to(tmp_path / "none", TensorFlowDatasetWithout(), samples=30)])


class TensorFlowDatasetWithout(TensorFlowDataset):
    def __iter__(self):
        return iter(())


def test_a_training_without_an_epoch_is_reported(tmp_path, caplog):
    fit([record_to(tmp_path)], epochs=0)
    assert "training recorded nothing. It ended before its first epoch" in caplog.text


def test_recording_anew_removes_the_first_training_and_continues_the_second(tmp_path):
    fit([record_to(tmp_path)], epochs=3)
    callback = record_to(tmp_path, overwrite=True)
    network = fit([callback], epochs=1)
    assert accord.open(tmp_path).epochs == 1
    fit([callback], network=network, epochs=2, initial_epoch=1)
    assert accord.open(tmp_path).epochs == 2
