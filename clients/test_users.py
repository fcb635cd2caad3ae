"""Users of the how-to pages: from an empty folder to conclusions that a held-back truth confirms.

Of the training labels of the digits, 40 % are wrong. Each user records what the networks predict
for the samples of both splits, without any true label, then predicts and audits by commands.
"""

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported

import torch
from torch.utils.data import DataLoader, TensorDataset

import accord
from accord.cli.app import run
from accord.data import load_digits, split_digits
from accord.data.noise import symmetric_noise

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks

NETWORKS, EPOCHS, WIDTH = 3, 16, 128
TRAIN, TEST = split_digits(load_digits(), seed=0)
X, X_TEST = (one.images.reshape(-1, 64).astype(np.float32) / 16 for one in (TRAIN, TEST))
GIVEN = symmetric_noise(TRAIN.labels, rate=0.4, classes=10, seed=0)
WRONG = TRAIN.labels != GIVEN
SGD = {"solver": "sgd", "learning_rate_init": 0.1, "batch_size": 32}  # of scikit-learn
SPLITS = {
    "held": (X_TEST, {}),
    "train": (X, {"given": GIVEN, "split": "train"}),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small networks
    monkeypatch.chdir(tmp_path)
    yield
    torch.set_num_threads(threads)


def check_conclusions(*, least, gain, noise=0.05):
    """Predict and audit by commands, and compare with the truth and an independent count."""
    assert run(["predict", "held", "--out", "labels.csv"]) == 0
    with Path("labels.csv").open() as file:
        labels = np.array([int(row["label"]) for row in csv.DictReader(file)])
    votes = np.asarray(accord.open("held").labels)
    classes = votes.max() + 1
    counts = np.stack([(votes == one).sum(axis=(0, 1)) for one in range(classes)])
    np.testing.assert_array_equal(labels, counts.argmax(axis=0))
    last = np.stack([(votes[:, -1] == one).sum(axis=0) for one in range(classes)]).argmax(axis=0)
    accuracy, majority = (labels == TEST.labels).mean(), (last == TEST.labels).mean()
    assert accuracy > least, (accuracy, majority)
    assert accuracy > majority + gain, (accuracy, majority)

    most = WRONG.sum() // 2
    assert run(["audit", "train", "--queue", "queue.csv", "--most", str(most)]) == 0
    with Path("queue.csv").open() as file:
        queue = [int(row["sample"]) for row in csv.DictReader(file)]
    assert len(queue) == most
    assert WRONG[queue].mean() > 0.9
    audit = accord.open("train").audit()
    assert abs(audit.noise_rate - WRONG.mean()) < noise, audit.noise_rate


def build_perceptron():
    return torch.nn.Sequential(
        torch.nn.Linear(64, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10)
    )


def test_plain_torch():
    inputs, given = torch.from_numpy(X), torch.from_numpy(GIVEN).long()
    for number in range(NETWORKS):
        torch.manual_seed(number)
        network = build_perceptron()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        recorders = {
            name: accord.Recorder(name, network=number, samples=len(one), classes=10, **options)
            for name, (one, options) in SPLITS.items()
        }
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(inputs)).split(32):
                loss = torch.nn.functional.cross_entropy(network(inputs[batch]), given[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.inference_mode():
                for name, recorder in recorders.items():
                    logits = network(torch.from_numpy(SPLITS[name][0]))
                    recorder.record(logits=logits, loss=float(loss))
        for recorder in recorders.values():
            recorder.close()
    check_conclusions(least=0.9, gain=0.03)


def test_lightning():
    lightning = pytest.importorskip("pytorch_lightning")
    from accord.lightning import RecordPredictions

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = build_perceptron()

        def forward(self, images):
            return self.layers(images)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    data = TensorDataset(torch.from_numpy(X), torch.from_numpy(GIVEN).long())
    for number in range(NETWORKS):
        torch.manual_seed(number)
        records = [
            RecordPredictions(
                name,
                DataLoader(TensorDataset(torch.from_numpy(one)), batch_size=500),
                network=number,
                classes=10,
                **options,
            )
            for name, (one, options) in SPLITS.items()
        ]
        trainer = lightning.Trainer(
            max_epochs=EPOCHS,
            callbacks=records,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Classifier(), DataLoader(data, batch_size=32, shuffle=True))
    check_conclusions(least=0.9, gain=0.03)


def test_keras():
    keras = pytest.importorskip("keras")
    from accord.keras import RecordPredictions

    for number in range(NETWORKS):
        keras.utils.set_random_seed(number)
        layers = keras.layers.Dense(WIDTH, activation="relu"), keras.layers.Dense(10, "softmax")
        network = keras.Sequential(layers)
        network.compile(
            optimizer=keras.optimizers.SGD(learning_rate=0.1, momentum=0.9),
            loss="sparse_categorical_crossentropy",
        )
        records = [
            RecordPredictions(name, one, network=number, classes=10, batch=1000, **options)
            for name, (one, options) in SPLITS.items()
        ]
        network.fit(X, GIVEN, batch_size=32, epochs=EPOCHS, verbose=0, callbacks=records)
    check_conclusions(least=0.9, gain=0.03)


def test_transformers():
    transformers = pytest.importorskip("transformers")
    from accord.transformers import RecordPredictions

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = build_perceptron()

        def forward(self, images, labels=None):
            logits = self.layers(images)
            loss = None if labels is None else torch.nn.functional.cross_entropy(logits, labels)
            return transformers.modeling_outputs.SequenceClassifierOutput(loss, logits)

    items = [{"images": one, "labels": label} for one, label in zip(X, GIVEN.tolist(), strict=True)]
    held = [{"images": one, "labels": 0} for one in X_TEST]
    for number in range(NETWORKS):
        options = {"network": number, "classes": 10}
        records = [
            RecordPredictions("held", held, **options),
            RecordPredictions("train", items, **options, **SPLITS["train"][1]),
        ]
        arguments = transformers.TrainingArguments(
            "checkpoints",
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=1000,
            learning_rate=5e-3,
            lr_scheduler_type="constant",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        transformers.set_seed(number)
        transformers.Trainer(
            Classifier(), arguments, train_dataset=items, callbacks=records
        ).train()
    check_conclusions(least=0.9, gain=0.015)


def test_scikit_learn():
    from sklearn.neural_network import MLPClassifier

    from accord.sklearn import MaxAgreementClassifier, open_recorder, record_epoch

    names = np.array([f"digit {label}" for label in range(10)])
    for number in range(NETWORKS):
        network = MLPClassifier((WIDTH,), **SGD, random_state=number)
        recorders = {
            name: open_recorder(
                name,
                network=number,
                classes=names,
                samples=len(one),
                **({"given": names[GIVEN], "split": "train"} if name == "train" else {}),
            )
            for name, (one, _) in SPLITS.items()
        }
        for _ in range(EPOCHS):
            network.partial_fit(X, names[GIVEN], classes=names)
            for name, recorder in recorders.items():
                record_epoch(recorder, network, SPLITS[name][0])
        for recorder in recorders.values():
            recorder.close()
    check_conclusions(least=0.88, gain=0.02)

    classifier = MaxAgreementClassifier(networks=NETWORKS, random_state=0).fit(X, names[GIVEN])
    assert classifier.score(X_TEST, names[TEST.labels]) > 0.88
    assert WRONG[classifier.audit().ranking[: WRONG.sum() // 2]].mean() > 0.9


def test_xgboost():
    xgboost = pytest.importorskip("xgboost")
    from accord.boosting import XGBoostRounds

    settings = {"objective": "multi:softprob", "num_class": 10, "max_depth": 4, "nthread": 1}
    settings |= {"subsample": 0.5, "colsample_bytree": 0.5, "learning_rate": 0.5}
    for number in range(NETWORKS):
        recorders = [
            accord.Recorder(name, network=number, samples=len(one), classes=10, **options)
            for name, (one, options) in SPLITS.items()
        ]
        rounds = [
            XGBoostRounds(recorder, one)
            for recorder, (one, _) in zip(recorders, SPLITS.values(), strict=True)
        ]
        data = xgboost.DMatrix(X, GIVEN)
        xgboost.train({**settings, "seed": number}, data, 30, callbacks=rounds)
        for recorder in recorders:
            recorder.close()
    check_conclusions(least=0.8, gain=0.02, noise=0.1)


@pytest.fixture(scope="module")
def old_labels():
    """Predictions of an earlier project: (network, epoch, sample) for each split."""
    from sklearn.neural_network import MLPClassifier

    rows = {name: [] for name in SPLITS}
    for number in range(NETWORKS):
        network = MLPClassifier((WIDTH,), **SGD, random_state=number)
        for name in SPLITS:
            rows[name].append([])
        for _ in range(EPOCHS):
            network.partial_fit(X, GIVEN, classes=range(10))
            for name, (one, _) in SPLITS.items():
                rows[name][-1].append(network.predict(one))
    return {name: np.array(labels) for name, labels in rows.items()}


def test_old_predictions(old_labels):
    np.savez("held.npz", labels=old_labels["held"])
    np.savez("train.npz", labels=old_labels["train"], given=GIVEN, split="train")
    for name in SPLITS:
        assert run(["import", f"{name}.npz", name, "--classes", "10"]) == 0
    check_conclusions(least=0.88, gain=0.02)


def test_an_evaluator_of_two_minutes(capsys):
    """The numbers of the README follow from the record that comes with Accord."""
    assert run(["score", "example://cifar10-sym40"]) == 0
    printed = dict(re.findall(r"(?m)^([a-z-]+) +(\d+\.\d+)", capsys.readouterr().out))
    record = accord.open("example://cifar10-sym40")
    votes = np.asarray(record.labels)
    counts = np.stack([(votes == one).sum(axis=(0, 1)) for one in range(10)])
    agreed = 100 * (counts.argmax(axis=0) == record.truth).mean()
    assert float(printed["max-agreement"]) == pytest.approx(agreed, abs=0.006)
    assert float(printed["single"]) == pytest.approx(
        100 * (votes[:, -1] == record.truth).mean(), abs=0.006
    )
    assert agreed > float(printed["majority"]) + 13


def test_a_notebook(old_labels):
    """Cells are run twice, as people do, in one session."""
    cells = [
        "import accord",
        "recorder = accord.Recorder('held', network=0, samples=len(rows), classes=10)",
        "for row in epochs[recorder.epochs:]:\n    recorder.record(row)",
        "recorder.close()",
        "record = accord.open('held')\nfound = record.predict()",
        "shown = repr(record)",
    ]
    epochs = old_labels["held"][0]
    session = {"rows": TEST.labels, "epochs": epochs}
    for cell in cells[:2]:
        exec(cell, session)
    with pytest.raises(accord.errors.RecordBusy, match=r"recorder\.close\(\)"):
        exec(cells[1], session)
    for cell in [*cells[2:], *cells]:
        exec(cell, session)
    assert session["record"].epochs == len(epochs)  # none twice
    assert "1 network, 16 epochs, 719 samples, 10 classes" in session["shown"]
    agreed = accord.max_agreement(epochs[None], classes=10)
    np.testing.assert_array_equal(session["found"].labels, agreed)
    assert (agreed == TEST.labels).mean() > (epochs[-1] == TEST.labels).mean() + 0.02
