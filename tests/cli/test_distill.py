"""`accord distill` trains students and prints what they and their baselines reach."""

import json

import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

import accord as library
from accord.training import parse_spec, train

TEXT = """
name = "noisy"
data = { kind = "digits", per_class = 20 }
noise = { kind = "symmetric", rate = 0.4 }
[train]
networks = 2
network = "mlp"
options = { widths = [32] }
epochs = 8
batch = 16
optimizer = { lr = 0.02 }
[record]
splits = ["test", "train"]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("distil") / "run"
    train(parse_spec(TEXT), out)
    return out


def test_the_document_holds_the_accuracy_of_the_recorded_students(accord, run, tmp_path):
    out = tmp_path / "student"
    options = ["--students", 2, "--epochs", 2, "--targets", "shares", "--out", out]
    status, text, err = accord("distill", run, *options, "--json")
    assert status == 0
    found, record = json.loads(text), library.open(out)
    assert {key: found[key] for key in ("run", "students", "targets", "reference", "failed")} == {
        "run": str(out),
        "students": 2,
        "targets": "the shares of all votes",
        "reference": "truth",
        "failed": {},
    }
    assert found["accuracy"] == record.score("single")[0].accuracy
    assert found["accuracy_all"] == record.score("probability-average")[0].accuracy
    assert found["methods"][0]["name"] == "single"
    assert f"{out}: 2 students, trained on the shares of all votes. Next: accord score" in err


def test_the_table_has_a_row_for_each_method(accord, run, tmp_path):
    status, out, _ = accord("distill", run, "--epochs", 1, "--compare", "--out", tmp_path / "one")
    assert status == 0
    heads, *rows = out.splitlines()
    assert heads.split() == ["method", "accuracy", "%", "95", "%", "interval", "networks", "passes"]
    names = [row.split("  ")[0] for row in rows]
    assert names[:5] == ["single", "majority", "max-agreement", "student", "given labels"]
    assert rows[2].split()[-1] == "16"
    assert " … " in rows[3]


def test_what_to_expect_is_printed_before_training(accord, tmp_path):
    clean = TEXT.replace('noise = { kind = "symmetric", rate = 0.4 }', "")
    train(parse_spec(clean.replace("epochs = 8", "epochs = 4")), tmp_path / "run")
    status, _, err = accord("distill", tmp_path / "run", "--epochs", 1)
    assert status == 0
    assert err.startswith("accord: no gain over training on the given labels is to be expected")
    assert "made by rules are a blind spot" in err.splitlines()[0]


def test_a_failed_student_fails_the_command(accord, run, tmp_path, monkeypatch):
    from accord.inference import _distill

    def fail(spec, out, **options):
        result = trained(spec, out, **options)
        return type(result)(result.out, {1: "the loss became nan"})

    trained = _distill.train
    monkeypatch.setattr(_distill, "train", fail)
    options = ["--students", 2, "--epochs", 1, "--out", tmp_path / "student"]
    status, _, err = accord("distill", run, *options)
    assert status == 1
    assert "accord: student 1 failed: the loss became nan" in err


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--targets", "all"], 2, "no targets are called 'all'"),
        (["--students", "0"], 2, "Invalid value for '--students'"),
        (["--extra", "nowhere"], 1, "the run has no checkpoints"),
        (["--out", "s3://bucket/run"], 2, "--out takes a folder of this machine"),
    ],
)
def test_mistakes_are_named(accord, run, options, status, words):
    found, out, err = accord("distill", run, *options)
    assert (found, out) == (status, "")
    assert words in err


def test_an_interrupted_command_names_itself(accord, run, tmp_path, monkeypatch):
    from accord.inference import _distill

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(_distill, "train", interrupted)
    out = tmp_path / "student"
    status, _, err = accord("distill", run, "--compare", "--out", out, "--targets", "map")
    assert status == 130
    again = f"accord distill {run} --targets map --students 1 --out {out} --compare"
    assert f"stopped; what was recorded is safe. To resume: {again}" in err
