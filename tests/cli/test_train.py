"""`accord train`: its output, its plans and the arguments that it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_spec import SMALL

from accord import training
from accord._record import open_record


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SMALL)
    return tmp_path / "spec.toml"


def train_text(spec, text):
    spec.write_text(text)
    return ["train", "spec.toml", "--out", "mine"]


def test_the_json_names_networks_epochs_and_records(accord, spec):
    text = SMALL + '[record]\nsplits = ["test", "train"]\naverages = ["ema"]\n'
    status, printed, stderr = accord(*train_text(spec, text), "--json", "--networks", "1")
    found = json.loads(printed)
    assert status == 0
    assert found.pop("seconds") > 0
    assert found == {
        "run": "mine",
        "name": "small",
        "networks": 2,
        "epochs": {"0": 0, "1": 2},
        "failed": {},
        "records": {"test": "mine/test", "train": "mine/train", "test-ema": "mine/test-ema"},
        "notes": [],
    }
    assert stderr.endswith("mine: trained. Next: accord score mine/test\n")


@pytest.mark.parametrize("first", ["0", "1"])
def test_the_progress_of_a_run_that_goes_on_ends_at_all_of_it(accord, spec, first):
    accord("train", "spec.toml", "--out", "mine", "--networks", first)
    lines = accord("train", "spec.toml", "--out", "mine")[2].splitlines()
    reported = [line for line in lines if line.startswith("training network")]
    assert reported[-1].endswith(": 100 of 100")


def test_without_json_nothing_is_printed(accord, spec):
    assert accord("train", "spec.toml", "--out", "mine")[:2] == (0, "")


def test_a_network_that_was_stopped_is_in_the_json_and_not_in_what_comes_next(accord, spec):
    text = SMALL.replace("networks = 2", "networks = [{}, { lr = 1e30 }, {}]\nbatch = 50")
    status, printed, stderr = accord(*train_text(spec, text), "--json")
    found = json.loads(printed)
    assert (status, found["epochs"]) == (1, {"0": 2, "1": 0, "2": 2})
    assert "the loss became" in found["failed"]["1"]
    assert stderr.endswith("Next: accord score mine/test --networks 0,2\n")
    assert accord("score", "mine/test", "--networks", "0,2")[0] == 0


def test_members_of_a_batch_ensemble_that_was_stopped_are_all_left_out(accord, spec):
    text = SMALL.replace("networks = 2", "networks = [{ lr = 1e30 }, {}]\nbatch_ensemble = 2")
    status, _, stderr = accord(*train_text(spec, text))
    assert status == 1
    assert stderr.endswith("Next: accord score mine/test --networks 2,3\n")


@pytest.mark.parametrize("rate", ["inf", "1e30"])
def test_a_run_without_trained_networks_is_reported(accord, spec, rate):
    text = SMALL + f"optimizer = {{ lr = {rate} }}\n"
    status, printed, stderr = accord(*train_text(spec, text), "--json")
    assert (status, json.loads(printed)["epochs"]) == (1, {"0": 0, "1": 0})
    assert stderr.count(" failed: ") == 2
    assert stderr.endswith(
        "mine: no network finished training. Correct the spec, and name another --out.\n"
    )
    assert "trained. Next" not in stderr


def test_the_plan_is_printed_as_json_too(accord, spec):
    status, printed, stderr = accord("train", "spec.toml", "--out", "mine", "--plan", "--json")
    found = json.loads(printed)
    assert (status, stderr) == (0, "")
    assert [one["seed"] for one in found.pop("networks")] == [0, 1]
    assert found.pop("device") in ("cpu", "cuda")
    assert found.pop("seconds") > 0
    assert found == {
        "run": "mine",
        "name": "small",
        "epochs": 2,
        "moments": 2,
        "samples": {"test": 719},
        "classes": 10,
        "done": {},
        "record_bytes": 2 * 2 * 719,
        "notes": [],
    }
    accord("train", "spec.toml", "--out", "mine", "--networks", "1")
    again = accord("train", "spec.toml", "--out", "mine", "--plan", "--json")[1]
    assert json.loads(again)["done"] == {"1": 2}


def test_a_plan_is_json_whatever_the_rate(accord, spec):
    status, printed, _ = accord(
        *train_text(spec, SMALL + "optimizer = { lr = inf }\n"), "--plan", "--json"
    )
    assert status == 0
    assert "Infinity" not in printed
    assert json.loads(printed)["seconds"] > 0


def test_the_plan_is_of_the_chosen_networks(accord, spec):
    _, printed, _ = accord("train", "spec.toml", "--plan", "--networks", "1")
    assert "1 network, " in printed
    assert "network 1: mlp" in printed
    assert "network 0" not in printed
    status, printed, stderr = accord("train", "spec.toml", "--plan", "--networks", "7")
    assert (status, printed) == (2, "")
    assert "small: no network 7; there are 0, 1" in stderr


def test_what_the_data_lack_is_noted_by_plan_and_run(accord, spec):
    np.savez(
        "x.npz", x_train=np.eye(4), y_train=[0, 1, 0, 1], x_test=np.eye(4), y_test=[0, 1, 2, 2]
    )
    text = SMALL.replace('"digits"\nper_class = 10', '"npz"\npath = "x.npz"')
    for options in ([], ["--plan"]):
        status, printed, stderr = accord(*train_text(spec, text), "--json", *options)
        (note,) = json.loads(printed)["notes"]
        assert (status, "has the class 2, but 2 of 4 test samples" in note) == (0, True)
        assert f"accord: {note}\n" in stderr


def test_what_was_left_out_in_reading_is_noted_by_plan_and_run(accord, spec):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)
    for number, name in enumerate(["train/a", "train/b", "test/a", "test/b"]):
        Path(f"photos/{name}").mkdir(parents=True)
        Image.fromarray(pixels + number).save(f"photos/{name}/1.png")
    Path("photos/train/b/2.png").write_text("no image")
    data = 'kind = "image-folder"\npath = "photos"\nsize = 8\nskip_unreadable = true'
    text = SMALL.replace('kind = "digits"\nper_class = 10', data)
    note = "train: left out 1 image that cannot be read: train/b/2.png"
    for options in ([], ["--plan"]):
        status, printed, stderr = accord(*train_text(spec, text), "--json", *options)
        assert (status, json.loads(printed)["notes"]) == (0, [note])
        assert f"accord: {note}\n" in stderr


def test_a_plan_uses_no_cluster(accord, spec):
    assert "on ray\n" in accord("train", "spec.toml", "--plan", "--ray", "head:1")[1]
    status, printed, stderr = accord("train", "spec.toml", "--plan", "--ray", "--gpus", "1")
    assert (status, printed, stderr) == (
        2,
        "",
        "accord: --plan does not use a cluster: leave --gpus out\n",
    )
    assert accord("train", "spec.toml", "--plan", "--gpus", "1")[0] == 2


def test_an_interrupted_command_prints_how_to_resume(accord, spec, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", stop)
    status, _, stderr = accord(
        "train", "spec.toml", "--out", "my run", "--networks", "0,1", "--json"
    )
    assert status == 130
    assert stderr.endswith(
        "To resume: accord train spec.toml --out 'my run' --networks 0,1 --json\n"
    )
    stderr = accord("train", "spec.toml", "--processes", "2")[2]
    assert stderr.endswith("To resume: accord train spec.toml --processes 2\n")


def test_several_processes_train_a_run_and_a_cluster_needs_none(accord, spec):
    status, printed, _ = accord("train", "spec.toml", "--out", "two", "--processes", "2", "--json")
    assert (status, json.loads(printed)["failed"]) == (0, {})
    accord("train", "spec.toml", "--out", "one", "--processes", "1")
    labels = [np.asarray(open_record(f"{out}/test").labels) for out in ("one", "two")]
    np.testing.assert_array_equal(*labels)
    stderr = accord("train", "spec.toml", "--processes", "2", "--ray")
    assert stderr == (
        2,
        "",
        "accord: --processes cannot be combined with --ray, which starts its own workers\n",
    )
    assert accord("train", "spec.toml", "--processes", "0")[0] == 2


TABLE = "species,mass,sex\n" + "".join(
    f"{'ab'[(n + (n % 9 == 1)) % 2]},{n % 2 * 10 + n % 7},{'NA' if n % 9 == 0 else 'fm'[n % 2]}\n"
    for n in range(40)
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(TABLE)
    return tmp_path / "mine.csv"


def test_a_table_is_trained_audited_and_inferred_without_a_spec(accord, table):
    status, printed, stderr = accord("train", "mine.csv", "--out", "run", "--networks", "0,1")
    assert (status, printed) == (0, "")
    assert "mine.csv: numbers: mass\nmine.csv: one feature per value: sex\n" in stderr
    assert stderr.endswith("run: trained. Next: accord score run/test\n")
    correct = ["audit", "run", "--json", "--proposals", "--corrected"]
    status, printed, stderr = accord(*correct, "fixed.csv")
    assert (status, set(json.loads(printed)["ids"])) == (0, set(open_record("run/train").ids))
    assert "Column 'species_given' holds the labels before. 8 rows outside the record" in stderr
    assert "To train on them: accord train fixed.csv --label species" in stderr
    assert (table.parent / "fixed.csv").read_text().startswith("species,mass,sex,species_given\n")
    assert accord(*correct, "fixed.npz")[0] == 0
    assert accord(*correct, "again.csv", "--source", "fixed.csv")[0] == 2
    assert accord(*correct, "again.csv", "--source", "mine.csv", "--label", "species")[0] == 0
    assert (table.parent / "again.csv").read_text() == (table.parent / "fixed.csv").read_text()
    (table.parent / "new.csv").write_text("mass,sex\n0,f\n13,x\n")
    status, printed, stderr = accord("infer", "run", "new.csv", "--out", "labels.csv")
    assert (status, printed) == (0, "")
    assert "column 'sex': 1 cell with a value that no training row has" in stderr
    rows = (table.parent / "labels.csv").read_text().splitlines()
    assert [row.split(",")[1:4:2] for row in rows] == [["id", "class"], ["2", "a"], ["3", "b"]]


def test_corrections_of_images_are_listed_by_path(accord, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    for number in range(40):
        file = tmp_path / "photos" / "ab"[(number + (number % 9 == 1)) % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 99, (8, 8)) + 150 * (number % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(file)
    assert accord("train", "photos", "--out", "run", "--networks", "0,1")[0] == 0
    for _ in range(2):
        assert accord("audit", "run", "--proposals", "--corrected", "fixed.csv")[0] == 0
    rows = (tmp_path / "fixed.csv").read_text().splitlines()
    assert rows[0] == "path,given,corrected"
    paths = {path.relative_to("photos").as_posix() for path in Path("photos").glob("*/*.png")}
    assert len(rows) == 33
    assert {row.split(",")[0] for row in rows[1:]} < paths


def test_a_table_is_cross_fitted(accord, table):
    train = ["train", "mine.csv", "--cross-fit", "2", "--out", "run", "--networks", "0"]
    status, _, stderr = accord(*train)
    assert status == 0
    assert stderr.endswith("run: trained. Next: accord audit run/train\n")
    assert open_record("run").reader.samples == 40
    train[1] = "run/spec.toml"
    assert accord(*train)[0] == 0
    status, _, stderr = accord("train", "run/spec.toml", "--cross-fit", "3", "--out", "run")
    assert (status, "--cross-fit is 3: leave one of them out" in stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["spec.toml", "--label", "y"], "is a spec, which names the column of labels itself"),
        (["mine.csv", "--label", "sexes"], "no column 'sexes'; it has species, mass, sex"),
        (["mine.csv", "--overwrite", "--plan"], "--overwrite cannot be combined with --ray or"),
        ([], "name a spec or data: accord train SPEC.toml, or accord train DATA.csv"),
    ],
)
def test_wrong_arguments_for_data_are_refused(accord, table, spec, arguments, words):
    status, _, stderr = accord("train", *arguments)
    assert status in (1, 2)
    assert words in stderr


def test_a_run_of_another_spec_is_overwritten_on_request(accord, spec):
    assert accord("train", "spec.toml", "--out", "mine")[0] == 0
    assert accord(*train_text(spec, SMALL.replace("epochs = 2", "epochs = 1")))[0] == 2
    assert accord("train", "spec.toml", "--out", "mine", "--overwrite")[0] == 0
    assert open_record("mine/test").epochs == 1
    nothing, summary = accord("train", "mine")[2].splitlines()
    assert nothing.startswith("accord: nothing was trained, as the networks were complete.")
    assert summary == "mine: trained. Next: accord score mine/test"
