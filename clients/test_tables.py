"""Real tables go from a file to corrected labels with the command alone and without a spec."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

WRONG = 0.25
ACCORD = (sys.executable, "-m", "accord")


def penguins(name, label):
    """As shipped: texts, dates, and NA for missing values."""
    package = importlib.util.find_spec("palmerpenguins")
    if package is None:
        pytest.skip("needs palmerpenguins")
    with (Path(package.origin).parent / "data" / name).open(newline="") as file:
        return label, list(csv.reader(file))


def from_sklearn(load):
    bunch = load()
    names = [str(name) for name in bunch.target_names]
    rows = [
        [*map(str, row), names[label]] for row, label in zip(bunch.data, bunch.target, strict=True)
    ]
    return "class", [[*bunch.feature_names, "class"], *rows]


WORDS = {
    "billing": "invoice refund charged card payment twice price",
    "technical": "crash error login screen update frozen slow",
    "praise": "great thanks love helpful friendly perfect nice",
}
COMMON = ["the", "my", "with", "app", "and", "today", "since", "please", "again", "for", "is", "it"]


def tickets():
    """Ids, dates, texts, categories, booleans and gaps."""
    random = np.random.default_rng(0)
    rows = [["ticket_id", "opened", "plan", "urgent", "minutes", "comment", "team", "version"]]
    for number in range(600):
        label = list(WORDS)[number % 3]
        words = [*random.choice(WORDS[label].split(), 3), *random.choice(COMMON, 5)]
        day = np.datetime64("2024-01-01") + int(random.integers(300))
        plan = random.choice(["free", "basic", "pro", "NA"])
        urgent = "true" if random.random() < (0.7 if label == "technical" else 0.2) else "false"
        minutes = "" if random.random() < 0.1 else f"{random.gamma(2, 9):.1f}"
        comment = " ".join(random.permutation(words)) + ", " + random.choice(COMMON)
        rows.append([f"T{number:05}", str(day), plan, urgent, minutes, comment, label, "7"])
    return "team", rows


TABLES = {
    "penguins": (lambda: penguins("penguins.csv", "species"), []),
    "penguins_raw": (lambda: penguins("penguins-raw.csv", "Species"), []),
    "breast_cancer": (lambda: from_sklearn(load_breast_cancer), []),
    "wine": (lambda: from_sklearn(load_wine), []),
    "digits": (lambda: from_sklearn(load_digits), []),
    "tickets": (tickets, ["--label", "team"]),
}


def accord(folder, *command):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*ACCORD, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def spoil(path, label, rows, wrong=WRONG):
    """Write a table with wrong labels; return the true ones and the given ones."""
    random, at = np.random.default_rng(1), rows[0].index(label)
    truth = np.array([row[at] for row in rows[1:]])
    classes = sorted(set(truth.tolist()))
    given = np.array(
        [
            random.choice([one for one in classes if one != label])
            if random.random() < wrong
            else label
            for label in truth.tolist()
        ]
    )
    for row, label in zip(rows[1:], given.tolist(), strict=True):
        row[at] = label
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return truth, given


@pytest.mark.parametrize("name", TABLES)
def test_a_table_goes_from_a_file_to_corrected_labels(name, tmp_path):
    make, options = TABLES[name]
    label, rows = make()
    truth, given = spoil(tmp_path / f"{name}.csv", label, rows)
    accord(tmp_path, "train", f"{name}.csv", *options, "--out", "run")
    printed, _ = accord(tmp_path, "audit", "run", "--json", "--queue", "queue.csv", "--most", "20")
    accord(tmp_path, "audit", "run", "--proposals", "--corrected", "corrected.csv")

    # The rate is right, and the first of the queue are wrong; ids lead to lines of the file.
    assert json.loads(printed)["noise_rate"] == pytest.approx(WRONG, abs=0.08)
    with (tmp_path / "queue.csv").open(newline="") as file:
        queue = list(csv.DictReader(file))
    ids = [row[0] for row in rows[1:]] if name == "tickets" else range(2, len(rows) + 1)
    row_of = {str(one): row for row, one in enumerate(ids)}
    queued = [row_of[one["id"]] for one in queue]
    assert [one["given_name"] for one in queue] == given[queued].tolist()
    assert np.mean(given[queued] != truth[queued]) >= 0.9

    # The table is the same but for the labels, and most of them are right now.
    with (tmp_path / "corrected.csv").open(newline="") as file:
        corrected = list(csv.reader(file))
    at = rows[0].index(label)
    assert corrected[0] == [*rows[0], f"{label}_given"]
    assert [row[-1] for row in corrected[1:]] == given.tolist()
    for before, after in zip(rows[1:], corrected[1:], strict=True):
        assert before[:at] + before[at + 1 :] == after[:at] + after[at + 1 : -1]
    labels = np.array([row[at] for row in corrected[1:]])
    changed = labels != given
    precision = np.mean(labels[changed] == truth[changed])
    audited = json.loads(printed)["samples"] / len(truth)
    assert precision >= 0.75, precision
    assert np.mean(labels == truth) >= 1 - WRONG + 0.6 * WRONG * audited


def test_an_accuracy_against_wrong_labels_is_corrected_and_not_called_right(tmp_path):
    label, rows = from_sklearn(load_digits)
    truth, _ = spoil(tmp_path / "digits.csv", label, rows, wrong=0.3)
    accord(tmp_path, "train", "digits.csv", "--out", "run")
    accord(tmp_path, "predict", "run", "--out", "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        predicted = {int(row["id"]) - 2: row["class"] for row in csv.DictReader(file)}
    right = np.mean([truth[row] == name for row, name in predicted.items()])

    scored = json.loads(accord(tmp_path, "score", "run", "--json")[0])
    agreed = scored["rules"]["max-agreement"]
    assert scored["reference"] == "given"
    assert right - agreed["accuracy"] > 0.2
    assert agreed["corrected"]["accuracy"] == pytest.approx(right, abs=0.03)
    assert agreed["corrected"]["low"] <= right <= agreed["corrected"]["high"]
    printed = " ".join(accord(tmp_path, "score", "run")[0].split())
    assert "% of the given labels" in printed
    assert "rule agreement corrected" in printed
    assert "which is right on" not in printed
