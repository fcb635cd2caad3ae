"""Training writes what it promises, resumes after any interruption, and gives the same bits."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from frames import deepest_chain
from killing import kill_run_after
from small_run import SMALL_CNN, TEXT, changed, labels_of, train_text

import accord
from accord import Recorder
from accord.cli.app import run as run_command
from accord.errors import ChoiceError, RecordBusy, SpecError, TrainingError
from accord.store import check_record
from accord.training import (
    Run,
    RunResult,
    _network_run,
    _train_run,
    _workers,
    parse_spec,
)
from accord.training._checkpoints import checkpoints_in, load_checkpoint, load_state
from accord.training._hardware import THREAD_SETTINGS, torch_threads
from accord.training._loop import EpochResult
from accord.training._prepared_data import encode_targets
from accord.training._train_run import finished_networks, result_json
from accord.training.networks import build


class Stop(Exception):
    pass


MIXED = changed(
    ("networks = 2", "networks = [{ options = { width = 4 } }, { options = { width = 64 } }]")
)


@pytest.fixture
def three_threads(monkeypatch):
    for name in THREAD_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with torch_threads(3):
        yield


def threads_seen(out, text=TEXT, **options):
    seen = {}

    def progress(event):
        seen.setdefault(event.network, set()).add(torch.get_num_threads())

    train_text(out, text, progress=progress, **options)
    return seen


def fake_lockstep(results, *, seen=None):
    """Return a lockstep that yields these results, for a machine without a GPU."""

    def train_lockstep(networks, samples, labels):
        for entrant in networks:
            entrant.network.to(samples.device)
        for position, what in results:
            if seen is not None:
                seen.append(position)
            if what == "broken":
                with torch.no_grad():
                    next(networks[position].network.parameters()).fill_(torch.nan)
            yield position, (what if isinstance(what, TrainingError) else epoch_result(what))

    return train_lockstep


def epoch_result(what):
    index = what if isinstance(what, int) else 0
    return EpochResult(index=index, progress=index + 1.0, loss=1.0, lr=0.02, state=None)


class FakeGpuRun(Run):
    """A run with its samples on the CPU, that claims to be on a GPU."""

    def batches(self, split, network):
        self.device = torch.device("cpu")
        try:
            return super().batches(split, network)
        finally:
            self.device = torch.device("cuda")


def train_on_fake_gpu(monkeypatch, out, text, results=(), *, obstacle=None, seen=None):
    monkeypatch.setattr(_train_run, "train_lockstep", fake_lockstep(results, seen=seen))
    monkeypatch.setattr(_train_run, "lockstep_obstacle", lambda _: obstacle)
    run, notes = FakeGpuRun(out, parse_spec(text)), []
    run.device = torch.device("cuda")
    return list(_train_run._executor(run, list(run.networks), None, notes)), notes


TWO_EPOCHS = ("epochs = 4", "epochs = 2")


def test_a_run_writes_records_checkpoints_states_and_metrics(whole):
    test, train = accord.open(whole / "test"), accord.open(whole / "train")
    assert (test.networks, test.epochs, test.samples) == (2, 4, 719)
    assert (train.samples, train.split) == (200, "train")
    assert test.given is None
    assert (train.given != train.truth).sum() == 80
    assert test.networks_info[1].metadata["seed"] == 1
    assert test.networks_info[0].metrics[0].keys() == {"loss", "lr"}
    assert (whole / "spec.toml").read_text() == TEXT
    for network in ("network-000", "network-001"):
        folder = whole / "checkpoints" / network
        assert list(checkpoints_in(folder)) == [0, 3]
        assert load_state(folder).epochs == 4
    with (whole / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["network"] for row in rows] == ["0"] * 4 + ["1"] * 4
    assert float(rows[3]["progress"]) == 4.0


def test_a_finished_run_is_not_trained_again(whole, monkeypatch):
    monkeypatch.setattr(_train_run, "train_network", lambda *_: pytest.fail("trained again"))
    assert train_text(whole).failed == {}


@pytest.mark.parametrize("state_seconds", [0.0, 1e9])
def test_a_last_checkpoint_missing_after_a_kill_is_written(
    whole, tmp_path, monkeypatch, state_seconds
):
    def killed(*_):
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(_network_run, "STATE_SECONDS", state_seconds)
        patch.setattr(_network_run, "save_checkpoint", killed)
        patch.setattr(Run, "checkpoint_epochs", {3})
        with pytest.raises(Stop):
            train_text(tmp_path / "run")
    assert accord.open(tmp_path / "run/test", networks=[0]).epochs == 4  # all is recorded
    assert train_text(tmp_path / "run").failed == {}
    for name in ("network-000", "network-001"):
        again, before = (
            load_checkpoint(checkpoints_in(out / "checkpoints" / name)[3])
            for out in (tmp_path / "run", whole)
        )
        assert all(torch.equal(again[key], before[key]) for key in before)


@pytest.mark.parametrize("gone", ["state", "epoch-0003"])
def test_a_deleted_state_or_checkpoint_is_not_written_again(tmp_path, monkeypatch, gone):
    train_text(tmp_path / "run")
    for path in (tmp_path / "run").glob(f"checkpoints/*/{gone}.safetensors"):
        path.unlink()
    monkeypatch.setattr(_train_run, "train_network", lambda *_: pytest.fail("trained again"))
    assert train_text(tmp_path / "run").failed == {}


@pytest.mark.parametrize("gone", ["test", "test/network-001", "train", "test-swa"])
def test_a_deleted_part_of_a_record_is_recorded_again(tmp_path, gone):
    out = tmp_path / "run"
    text = changed(("checkpoints = 2", 'averages = ["swa"]\nevery = 2'))
    train_text(out, text)
    before = {split: labels_of(out, split) for split in ("test", "train", "test-swa")}
    shutil.rmtree(out / gone)
    train_text(out, text)
    for split, labels in before.items():
        np.testing.assert_array_equal(labels_of(out, split), labels)


def test_a_network_without_checkpoints_is_finished(tmp_path, monkeypatch):
    guessing = changed((SMALL_CNN, 'network = "random"'), ("epochs = 4", "epochs = 1"))
    without = changed(("checkpoints = 2", "checkpoints = 0"), ("epochs = 4", "epochs = 1"))
    for name, text in (("guessing", guessing), ("none", without)):
        train_text(tmp_path / name, text)
    monkeypatch.setattr(_train_run, "train_network", lambda *_: pytest.fail("trained again"))
    for name, text in (("guessing", guessing), ("none", without)):
        assert train_text(tmp_path / name, text).failed == {}


@pytest.mark.parametrize("state_seconds", [0.0, 1e9])
def test_an_interrupted_run_resumes_to_the_same_bits(whole, tmp_path, monkeypatch, state_seconds):
    monkeypatch.setattr(_network_run, "STATE_SECONDS", state_seconds)

    def stop(event):
        if (event.network, event.epoch) == (1, 2.0):
            raise Stop

    with pytest.raises(Stop):
        train_text(tmp_path / "run", progress=stop)
    assert load_state(tmp_path / "run/checkpoints/network-000").epochs == 4
    train_text(tmp_path / "run")
    for split in ("test", "train"):
        np.testing.assert_array_equal(labels_of(tmp_path / "run", split), labels_of(whole, split))


def test_progress_counts_only_the_chosen_networks(tmp_path):
    seen = []
    text = changed(("epochs = 4", "epochs = 1"))
    train_text(tmp_path / "run", text, networks=[1], progress=seen.append)
    assert [(event.network, event.networks, event.epoch) for event in seen] == [(1, 1, 1.0)]


def test_finished_networks_are_reported_once_another_trains(tmp_path):
    seen = []
    text = changed(("epochs = 4", "epochs = 2"), ("networks = 2", "networks = 3"))
    train_text(tmp_path / "run", text, networks=[0, 2])
    train_text(tmp_path / "run", text, progress=seen.append)
    assert [(event.network, event.epoch) for event in seen] == [(0, 2), (2, 2), (1, 1), (1, 2)]
    assert {(event.networks, event.epochs) for event in seen} == {(3, 2)}
    losses = accord.open(tmp_path / "run/test", networks=[0]).networks_info[0].metrics
    assert seen[0].loss == losses[-1]["loss"]
    seen.clear()
    train_text(tmp_path / "run", text, progress=seen.append)
    assert seen == []


def test_small_networks_train_in_one_thread_and_large_ones_in_all(tmp_path, three_threads):
    assert threads_seen(tmp_path / "run", MIXED) == {0: {1}, 1: {3}}
    assert torch.get_num_threads() == 3
    assert threads_seen(tmp_path / "apart", MIXED, networks=[1]) == {1: {3}}


@pytest.mark.parametrize("name", THREAD_SETTINGS)
def test_the_environment_overrides_the_number_of_threads(
    tmp_path, monkeypatch, three_threads, name
):
    monkeypatch.setenv(name, "3")
    assert threads_seen(tmp_path / "run") == {0: {3}, 1: {3}}


def test_the_number_of_threads_is_restored_after_an_interruption(tmp_path, three_threads):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:  # and held: it keeps the frames alive
        train_text(tmp_path / "run", progress=interrupt)
    assert torch.get_num_threads() == 3
    assert caught.type is KeyboardInterrupt


def test_the_bits_of_a_small_run_do_not_depend_on_available_threads(whole, tmp_path, three_threads):
    train_text(tmp_path / "run")
    ours, theirs = (
        load_checkpoint(out / "checkpoints" / "network-000" / "epoch-0003.safetensors")
        for out in (tmp_path / "run", whole)
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_last_batch_of_one_sample_is_explained(tmp_path):
    text = changed(
        (SMALL_CNN, 'network = "resnet18"\noptions = { width = 8 }'), ("batch = 64", "batch = 199")
    )  # of 200 samples
    failed = train_text(tmp_path / "run", text, networks=[0]).failed
    assert "the last batch of an epoch has one sample, but the network needs more" in failed[0]
    assert "Choose another train.batch" in failed[0]


@pytest.mark.slow
def test_a_run_killed_repeatedly_resumes_to_the_same_bits(whole, tmp_path):
    out = tmp_path / "run"
    for epochs in (1, 3, 6):
        kill_run_after(epochs, TEXT, out)
        assert check_record(out / "test").sound
    train_text(out)
    for split in ("test", "train"):
        np.testing.assert_array_equal(labels_of(out, split), labels_of(whole, split))


def test_networks_trained_separately_have_the_same_bits(whole, tmp_path):
    train_text(tmp_path / "run", networks=[1])
    train_text(tmp_path / "run", networks=[0])
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), labels_of(whole))
    with pytest.raises(ChoiceError, match="small: no network 5; there are 0, 1"):
        train_text(tmp_path / "run", networks=[5])
    with pytest.raises(ChoiceError, match=r"small: a network is selected twice in \[0, 1, 0\]"):
        train_text(tmp_path / "run", networks=[0, 1, 0])


def test_a_network_cannot_be_trained_by_two_processes(tmp_path):
    def meanwhile(*_):
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            train_text(tmp_path / "run", networks=[0])
        raise Stop

    with pytest.raises(Stop):
        train_text(tmp_path / "run", progress=meanwhile)


def test_a_network_with_a_loss_of_nan_fails_and_the_others_continue(tmp_path):
    text = changed(("networks = 2", "networks = [{ lr = 1e30 }, {}]"), ("epochs = 4", "epochs = 2"))
    result = train_text(tmp_path / "run", text)
    assert list(result.failed) == [0]
    assert "the loss became" in result.failed[0]
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2


def test_a_network_that_fails_in_lockstep_is_reported_once_and_the_others_continue(
    tmp_path, monkeypatch
):
    later = TrainingError("the loss became nan")
    results = [(0, "broken"), (1, 0), (0, later), (1, 1)]
    events, _ = train_on_fake_gpu(monkeypatch, tmp_path / "run", changed(TWO_EPOCHS), results)
    assert [(event.network, event.error is None) for event in events] == [
        (0, False),
        (1, True),
        (1, True),
    ]
    assert "Has the network diverged?" in events[0].error
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2


def test_a_lockstep_in_which_all_networks_fail_ends(tmp_path, monkeypatch):
    seen = []
    results = [(0, TrainingError("the loss became nan")), (1, "broken"), (1, 1)]
    events, _ = train_on_fake_gpu(
        monkeypatch, tmp_path / "run", changed(TWO_EPOCHS), results, seen=seen
    )
    assert all(event.error for event in events)
    assert (len(events), seen) == (2, [0, 1])


def test_a_random_predictor_does_not_keep_the_others_from_the_lockstep(tmp_path, monkeypatch):
    text = changed(
        ("networks = 2", 'networks = [{}, { network = "random", options = {} }, {}]'), TWO_EPOCHS
    )
    results = [(0, TrainingError("the loss became nan")), (1, 0), (1, 1)]
    events, notes = train_on_fake_gpu(monkeypatch, tmp_path / "run", text, results)
    assert [event.network for event in events] == [0, 2, 2, 1, 1]  # a failed one is not retrained
    assert notes == []
    assert accord.open(tmp_path / "run/test", networks=[1, 2]).epochs == 2


def test_networks_that_cannot_run_in_lockstep_are_trained_one_by_one_with_a_note(
    tmp_path, monkeypatch
):
    text = changed(("epochs = 4", "epochs = 1"))
    monkeypatch.setattr(_train_run, "train_network", lambda run, network: iter([network.number]))
    events, notes = train_on_fake_gpu(
        monkeypatch, tmp_path / "run", text, obstacle="they are on disk"
    )
    assert events == [0, 1]
    assert notes == ["the networks were trained one after the other: they are on disk"]


def test_networks_with_targets_are_trained_one_by_one(tmp_path, monkeypatch):
    content, digest = encode_targets(np.full((200, 10), 0.1))
    (tmp_path / "run").mkdir()
    (tmp_path / "run/targets.npy").write_bytes(content)
    text = changed(("epochs = 4", f'epochs = 1\ntargets = "{digest}"'))
    monkeypatch.setattr(_train_run, "train_network", lambda run, network: iter([network.number]))
    events, (note,) = train_on_fake_gpu(monkeypatch, tmp_path / "run", text, obstacle=None)
    assert events == [0, 1]
    assert note.endswith("one after the other: train.targets is not available side by side")


def test_a_warning_on_weights_is_logged_once_for_all_networks(tmp_path, caplog):
    weights = build("small-cnn", classes=3, channels=1, size=8, seed=0, width=4).state_dict()
    torch.save(weights, tmp_path / "weights.pth")
    text = changed(
        (SMALL_CNN, f"{SMALL_CNN}\npretrained = '{tmp_path}/weights.pth'"), ("= 4\n", "= 1\n")
    )
    train_text(tmp_path / "run", text)
    (message,) = caplog.messages
    assert "has 3 classes, the network 10: its last layer" in message


def test_fractions_of_an_epoch_are_recorded_and_resumed(tmp_path):
    text = changed(("[record]", "[record]\nevery = 0.5"), ("epochs = 4", "epochs = 2"))
    train_text(tmp_path / "one", text)
    assert accord.open(tmp_path / "one/test").progress == (0.5, 1.0, 1.5, 2.0)

    def stop(event):
        if event.epoch == 1.5:
            raise Stop

    with pytest.raises(Stop):
        train_text(tmp_path / "two", text, progress=stop)
    train_text(tmp_path / "two", text)
    np.testing.assert_array_equal(labels_of(tmp_path / "two"), labels_of(tmp_path / "one"))


def test_the_command_plans_lists_trains_and_reports_mistakes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(changed(("epochs = 4", "epochs = 1")))
    assert run_command(["train", "spec.toml", "--plan"]) == 0
    assert "2 networks, 1 epoch, 10 classes" in capsys.readouterr().out
    assert run_command(["train", "--list"]) == 0
    assert "network/densenet121" in capsys.readouterr().out.splitlines()
    assert run_command(["train", "spec.toml", "--out", "mine"]) == 0
    stderr = capsys.readouterr().err
    assert "training network 1, epoch 1 of 1" in stderr
    assert "mine: trained. Next: accord score mine/test" in stderr
    assert run_command(["score", "mine/test"]) == 0
    (tmp_path / "spec.toml").write_text(changed(("epochs = 4", "epoch = 1")))
    assert run_command(["train", "spec.toml"]) == 2
    assert "Did you mean 'epochs'?" in capsys.readouterr().err
    assert run_command(["train"]) == 2
    (tmp_path / "spec.toml").write_text(
        changed(('kind = "digits"', 'kind = "cifar10"\npath = "no"'))
    )
    assert run_command(["train", "spec.toml"]) == 1


def test_a_csv_table_is_trained_on(tmp_path):
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(200, 3)) * [1, 10, 100]
    labels = np.where(rows[:, 0] + rows[:, 1] / 10 > 0, "yes", "no")
    lines = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(rows, labels, strict=True)]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,c,left", *lines]))
    text = f"""
name = "table"
[data]
kind = "csv"
path = "{tmp_path}/mine.csv"
label = "left"
held_out = 0.2
[train]
networks = 2
network = "mlp"
options = {{ widths = [16] }}
epochs = 20
batch = 16
optimizer = {{ kind = "adamw", lr = 0.01 }}
"""
    train_text(tmp_path / "run", text)
    record = accord.open(tmp_path / "run/test")
    assert record.class_names == ("no", "yes")
    assert record.score(["majority"])[0].accuracy > 0.85
    with pytest.raises(SpecError, match="tables cannot be augmented"):
        train_text(
            tmp_path / "other", text.replace("epochs = 20", 'epochs = 20\naugment = ["flip"]')
        )


def test_a_folder_of_images_is_trained_on_from_disk(tmp_path):
    from PIL import Image

    generator = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 6)):
        for name, shade in (("dark", 40), ("light", 200)):
            folder = tmp_path / "photos" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = generator.integers(-30, 30, (20, 24, 3)) + shade
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    text = f"""
name = "folder"
[data]
kind = "image-folder"
path = "{tmp_path}/photos"
size = 16
[train]
networks = 1
network = "small-cnn"
options = {{ width = 4 }}
epochs = 4
batch = 8
augment = ["flip"]
"""
    train_text(tmp_path / "run", text)
    record = accord.open(tmp_path / "run/test")
    assert record.class_names == ("dark", "light")
    assert record.ids[0].endswith(".png")
    assert record.score(["majority"])[0].accuracy == 1.0


THREE = parse_spec("""
name = "small"
[data]
kind = "digits"
[train]
networks = 3
batch_ensemble = 2
epochs = 3
""")


@pytest.fixture
def partial(tmp_path):
    """A run that recorded two epochs of networks 0 to 3, and nothing of 4 and 5."""
    for network in range(4):
        with Recorder(tmp_path / "test", network=network, samples=2, classes=10) as recorder:
            recorder.record([0, 1])
            recorder.record([0, 1])
    return tmp_path


def test_recorded_epochs_count_members_and_are_0_without_a_record(partial, tmp_path):
    assert Run(partial, THREE).recorded_epochs() == {0: 2, 1: 2, 2: 2, 3: 2, 4: 0, 5: 0}
    assert set(Run(tmp_path / "nowhere", THREE).recorded_epochs().values()) == {0}


def test_an_incomplete_record_has_no_epochs(tmp_path):
    (tmp_path / "test").mkdir()
    assert set(Run(tmp_path, THREE).recorded_epochs().values()) == {0}


def test_failed_networks_are_not_finished(partial):
    assert finished_networks(THREE, RunResult(partial, {})) == [0, 1, 2, 3]
    assert finished_networks(THREE, RunResult(partial, {0: "the loss became nan"})) == [2, 3]


def test_result_json_has_strings_as_keys(partial):
    found = result_json(THREE, RunResult(partial, {4: "bang"}, ("slow",)), seconds=1.5)
    assert (found["networks"], found["epochs"]["3"], found["seconds"]) == (6, 2, 1.5)
    assert (found["failed"], found["notes"]) == ({"4": "bang"}, ["slow"])
    assert found["records"] == {"test": str(partial / "test")}


@pytest.mark.slow
def test_calls_of_accord_nest_at_most_15_deep(tmp_path, monkeypatch):
    example = Path(__file__).parents[2] / "examples" / "digits.toml"
    text = example.read_text().replace("epochs = 40", "epochs = 1")
    (tmp_path / "digits.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    in_main = deepest_chain(lambda: run_command(["train", "digits.toml", "--out", "one"]))
    in_parent = deepest_chain(
        lambda: run_command(["train", "digits.toml", "--out", "two", "--processes", "2"])
    )
    run = Run.create("three", parse_spec(text), source=text)
    job = {"run": "three", "spec": run.spec.model_dump_json(), "network": 0, "threads": 1}
    in_worker = deepest_chain(lambda: _workers.train_job(job, lambda event: None))
    for chain in (in_main, in_parent, in_worker):
        assert 5 < len(chain) <= 15, "\n".join(chain)
    assert accord.open("three/test").epochs == 1
