"""Ways to hold it wrong: each is refused with cause and fix, and none produces a number."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from torch.utils.data import DataLoader, TensorDataset

import accord
from accord.cli.app import run
from accord.errors import AccordError
from accord.sklearn import MaxAgreementClassifier, open_recorder, record_partial_fit, record_stages
from accord.store import import_record
from accord.torch import record_epoch

SAMPLES, CLASSES = 6, 3
LABELS = np.array([0, 1, 2, 2, 1, 0])
TABLE = np.eye(CLASSES)[LABELS]  # probabilities
X = np.random.default_rng(0).normal(size=(30, 4))
Y = np.arange(30) % CLASSES


def opened(network=0, **options):
    options = {"samples": SAMPLES, "classes": CLASSES, **options}
    return accord.Recorder("record", network=network, **options)


def record(predicted=None, *, probabilities=False, **options):
    with opened(probabilities=probabilities) as recorder:
        try:
            recorder.record(predicted, **options)
        finally:
            assert recorder.epochs == 0


def after(*rows, **options):
    """Open the record of one network that predicted some rows."""
    with opened(**options) as recorder:
        for row in rows or (LABELS, LABELS):
            recorder.record(row)
    return accord.open("record")


def again(**options):
    after()
    opened(1, **options)


def epochs_of_other_sizes():
    with opened() as recorder:
        recorder.record(LABELS)
        try:
            recorder.record(LABELS[:-1])
        finally:
            assert recorder.epochs == 1


def twice(*numbers, **options):
    with opened() as recorder:
        for number in numbers:
            recorder.record(LABELS, **{name: values[number] for name, values in options.items()})


def evaluate(**options):
    loader = DataLoader(TensorDataset(torch.eye(SAMPLES, 4)), **options)
    with opened() as recorder:
        record_epoch(recorder, torch.nn.Linear(4, CLASSES), loader)


def write_npz(**arrays):
    np.savez("source.npz", **arrays)
    import_record("source.npz", "record")


def import_csv(text):
    Path("votes.csv").write_text(text)
    import_record("votes.csv", "record")


def text_as_record():
    Path("labels.csv").write_text("id,label\n1,cat\n")
    accord.open("labels.csv")


def train_fitted():
    with open_recorder("record", network=0, classes=range(3), samples=30) as recorder:
        record_partial_fit(recorder, GaussianNB().fit(X, Y), X, Y, X, epochs=2)


def stages_of_sgd():
    with open_recorder("record", network=0, classes=range(3), samples=30) as recorder:
        record_stages(recorder, SGDClassifier().fit(X, Y), X)


def classify(*arguments, **options):
    MaxAgreementClassifier(*arguments, **options).fit(X, Y)


def unequal():
    after()
    with opened(1) as recorder:
        recorder.record(LABELS)
    accord.open("record")


MISUSES = {
    # recording
    "labels from 1": (lambda: record(LABELS + 1), r"0\.\.2 for 3 classes; got 1\.\.3.*counted fr"),
    "float labels": (lambda: record(LABELS / 2), r"whole numbers; got 0\.5. For probabilities"),
    "bool labels": (lambda: record(LABELS > 0), r"got bool values. Add \.astype\(int\)"),
    "names without class_names": (lambda: record(["owl"] * 6), r"list them: class_names="),
    "an unknown name": (
        lambda: after(["emu"] * 6, class_names=["owl", "cat", "dog"]),
        "among the class_names owl, cat, dog; got 'emu'",
    ),
    "transposed axes": (lambda: record(TABLE.T), r"got \(3, 6\). Are the axes transposed\?.*\.T"),
    "batches": (lambda: record([LABELS[:4], LABELS[4:]]), r"batches\? Join them: np\.concatenate"),
    "a column": (lambda: record(LABELS[:, None]), r"got \(6, 1\). Flatten it: reshape\(-1\)"),
    "logits as probabilities": (lambda: record(3 * TABLE), r"sum to 1.*record\(logits=…\)"),
    "probabilities as logits": (
        lambda: record(logits=TABLE, probabilities=True),
        r"got rows in 0\.\.1 that sum to 1. Are they probabilities\? .*record\(probabilities\)",
    ),
    "percentages": (lambda: record(100 * TABLE), r"must lie in 0\.\.1.*got 0\.\.100"),
    "NaN": (lambda: record(TABLE * np.nan), r"finite; sample 0 holds NaN.*diverged\?"),
    "epochs of other sizes": (epochs_of_other_sizes, r"got \(5,\). Does the .*drop the last batch"),
    "an epoch twice": (lambda: twice(0, 0, epoch=[0]), r"was recorded before.*recorder\.epochs"),
    "descending epochs": (
        lambda: twice(0, 1, progress=[2, 1]),
        r"the last at progress 2; got 1, which was recorded before",
    ),
    "negative progress": (lambda: record(LABELS, progress=-1), r"0 or more; got -1.*omit it"),
    "a shuffled loader": (lambda: evaluate(shuffle=True), r"any order.*shuffle=False, or with ids"),
    "a short loader": (lambda: evaluate(batch_size=4, drop_last=True), "drop_last=False"),
    "other ids": (
        lambda: (after(ids=range(6)), opened(1, ids=range(1, 7))),
        r"ids differ.*6 of 6; the first is number 0: 0 in the record, 1 here.*overwrite=True",
    ),
    "an id twice": (lambda: opened(ids=[1] * 6), "unique; 1 occurs twice. Give each sample one"),
    "another split": (lambda: again(split="train"), r"split test; this recorder has train.*overwr"),
    "other classes": (lambda: again(classes=4), r"classes 3; this recorder has 4.*overwrite=True"),
    "too few class_names": (lambda: opened(class_names=["a"]), r"must be 3 names.*one for each"),
    "truth of another size": (lambda: opened(truth=[0, 1]), r"truth must have shape \(6,\).*got"),
    "one-hot truth": (lambda: opened(truth=TABLE), r"one-hot\? Take the class.*argmax"),
    "two recorders": (
        lambda: (one := opened()) and opened(one.network),
        r"another recorder holds this network.*close it first: recorder\.close\(\)",
    ),
    "other settings": (
        lambda: (after(metadata={"lr": 0.1}), opened(metadata={"lr": 0.2})),
        r"with metadata \{'lr': 0\.1\}; this recorder has \{'lr': 0\.2\}.*overwrite=True",
    ),
    "a record among other files": (
        lambda: (Path("record").mkdir(), Path("record/a.py").touch(), opened()),
        r"contains 'a\.py' and no record; give an empty or new folder",
    ),
    # reading
    "a text file as record": (text_as_record, r"it is a file. If it holds predictions: accord imp"),
    "no record": (lambda: accord.open("nowhere"), r"no such file.*written by a recorder"),
    "unequal networks": (unequal, r"network 0: 2, network 1: 1.*common=True"),
    "unsorted epochs": (lambda: after().select(epochs=[1, 0]), r"must ascend.*Select sorted\(epoc"),
    "an unknown rule": (lambda: after().predict("majorty"), "Did you mean 'majority'"),
    "no probabilities": (lambda: after().predict("soft-agreement"), r"Recorder\(…, probabilities="),
    "no labels to score": (lambda: after().score(), r"nothing can be scored.*truth=labels"),
    "no labels to audit": (lambda: after().audit(), r"holds none.*Recorder\(…, given=labels\)"),
    "one network to watch": (lambda: after().watch(), "needs two; there is one. Record another"),
    "labels without an axis": (
        lambda: accord.max_agreement(LABELS[None], classes=3),
        r"axes \(network, epoch, sample\); got shape \(1, 6\).*labels\[None\]",
    ),
    # import
    "transposed labels": (
        lambda: write_npz(labels=np.zeros((SAMPLES, 2, 4), int), truth=LABELS),
        r"truth has 6 values, but the axis sample has 4.*--axes sample,network,epoch",
    ),
    "labels of two axes": (lambda: write_npz(labels=np.zeros((2, 6), int)), r"Name the axes that"),
    "several arrays": (
        lambda: write_npz(a=np.zeros((2, 3, 4), int), b=np.zeros((2, 3, 4), int)),
        r"no array named 'labels'; it has a \(2, 3, 4\).*--key NAME",
    ),
    "a vote twice": (
        lambda: import_csv("network,epoch,sample,label\n0,0,a,cat\n0,0,a,dog\n"),
        "line 3 has the same network, epoch and sample as line 2.*Remove one",
    ),
    "no column of labels": (
        lambda: import_csv("network,epoch,sample,pred\n0,0,a,cat\n"),
        r"has no column 'label'; it has network, epoch, sample, pred\. Expected",
    ),
    "a pattern of no file": (
        lambda: import_record(".", "record", pattern="seed{network}/epoch_{epoch}.npy"),
        r"no file is named 'seed\{network\}/epoch_\{epoch\}\.npy'",
    ),
    # scikit-learn
    "a fitted estimator": (train_fitted, r"already fitted, so its first epochs are lost.*clone\("),
    "no stages": (stages_of_sgd, "SGDClassifier has no staged_predict. Use record_partial_fit"),
    "no epochs": (lambda: classify(SVC()), r"cannot be trained by epoch.*Choose another, such as"),
    "a class": (lambda: classify(SVC), r"must be a classifier.*For a class, add \(\)"),
    "a module": (lambda: classify(module=torch.nn.Linear(4, 3)), r"got a Linear. Write module=lam"),
    "early stopping": (
        lambda: classify(SGDClassifier(early_stopping=True)),
        "cannot be trained epoch by epoch.*set early_stopping=False",
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_refused_with_cause_and_fix(misuse):
    do, words = MISUSES[misuse]
    with pytest.raises(AccordError, match=words):
        do()


SPEC = "name = 'mine'\n[data]\nkind = 'digits'\n[train]\nepohcs = 3\n"
COMMANDS = {
    ("score", "labels.csv"): "labels.csv: not a record: it is a file",
    ("score", "record", "--rule", "majorty"): "Did you mean 'majority'?",
    ("predict", "record", "--out", "labels.txt"): "predictions can be written as .npy, .csv",
    ("predict", "record", "--networks", "7"): "no network 7; there are 0",
    ("predict", "record", "--epochs", "::-1"): "epochs must ascend",
    ("audit", "record"): "Recorder(…, given=labels)",
    ("trust", "record", "--risk", "2"): "--risk must lie between 0 and 1, such as 0.05; got 2",
    ("infer", "record", "labels.csv"): "is a record of predictions, not a run. Name the folder",
    ("remove", "record", "--networks", "9"): "no network 9; there are 0",
    ("pack", "record", "record"): "exists; choose another name",
    ("train", "spec.toml"): "no key train.epohcs. Did you mean 'epochs'?",
}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_misused_command_prints_the_cure_and_no_number(arguments, capsys):
    Path("labels.csv").write_text("id,label\n1,cat\n")
    Path("spec.toml").write_text(SPEC)
    after()
    assert run(list(arguments)) in (1, 2)
    printed = capsys.readouterr()
    assert COMMANDS[arguments] in " ".join(printed.err.split())
    assert printed.out == ""


def test_a_misused_command_with_json_prints_no_json(capsys):
    after()
    assert run(["score", "record", "--json", "--rule", "majorty"]) != 0
    with pytest.raises(json.JSONDecodeError):
        json.loads(capsys.readouterr().out)
