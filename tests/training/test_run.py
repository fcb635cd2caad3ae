"""A run trains what its spec asks, is stopped and started at will, and mixes nothing up."""

import csv
import re
import shutil
import sys

import numpy as np
import pytest
import torch
from killing import kill_run_after

import accord
from accord.cli.app import run as run_command
from accord.errors import ChoiceError, RecordBusy, SourceError, SpecError, TrainingError
from accord.store import check_record
from accord.training import Run, default_out, network_specs, parse_spec, plan_run, train
from accord.training import _build as members_module
from accord.training import _network_run as keeping
from accord.training import _train as train_module
from accord.training._build import build_network
from accord.training._checkpoints import checkpoints_in, load_checkpoint, load_state
from accord.training._hardware import THREAD_SETTINGS, torch_threads
from accord.training._loop import EpochResult
from accord.training._names import registered_names
from accord.training._plan import plan_text
from accord.training._prepared_data import prepare_data
from accord.training.networks import build

TEXT = """
name = "small"
[data]
kind = "digits"
per_class = 20
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 2
network = "small-cnn"
options = { width = 4 }
epochs = 4
batch = 64
optimizer = { lr = 0.02 }
augment = ["shift"]
[record]
splits = ["test", "train"]
checkpoints = 2
"""

SMALL = 'network = "small-cnn"\noptions = { width = 4 }'


def changed(*pairs):
    text = TEXT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def go(out, text=TEXT, **options):
    return train(parse_spec(text), out, source=text, **options)


def labels_in(out, split="test"):
    return np.asarray(accord.open(out / split).labels)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    assert go(out).failed == {}
    return out


def test_a_run_holds_all_it_promises(whole):
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


def test_checkpoints_hold_the_weights_that_predicted(whole):
    weights = load_checkpoint(checkpoints_in(whole / "checkpoints" / "network-000")[3])
    state = load_state(whole / "checkpoints" / "network-000")
    assert weights.keys() == state.weights.keys()
    assert all(torch.equal(weights[name], state.weights[name]) for name in weights)


@pytest.mark.parametrize(
    ("asked", "epochs"),
    [("0", []), ("1", [3]), ("2", [0, 3]), ("9", [0, 1, 2, 3]), ('"all"', [0, 1, 2, 3])],
)
def test_checkpoints_are_spaced_equally_and_one_is_the_last(asked, epochs):
    spec = parse_spec(changed(("checkpoints = 2", f"checkpoints = {asked}")))
    assert sorted(Run("new", spec).checkpoint_epochs) == epochs


@pytest.mark.parametrize(
    ("every", "asked", "epochs"),
    [
        ("3", "2", [2, 6]),
        ("3", "3", [2, 5, 6]),
        ("3", "7", [2, 5, 6]),
        ("3", '"all"', [2, 5, 6]),
        ("2", "3", [1, 5, 6]),
        ("9", "2", [6]),
        ("0.5", "3", [0, 3, 6]),
    ],
)
def test_checkpoints_are_of_epochs_that_are_recorded(every, asked, epochs):
    text = changed(
        ("epochs = 4", "epochs = 7"), ("checkpoints = 2", f"checkpoints = {asked}\nevery = {every}")
    )
    assert sorted(Run("new", parse_spec(text)).checkpoint_epochs) == epochs


def test_as_many_checkpoints_are_kept_as_are_asked_for(tmp_path):
    text = changed(("epochs = 4", "epochs = 7"), ("checkpoints = 2", "checkpoints = 3\nevery = 3"))
    go(tmp_path / "run", text, networks=[0])
    assert list(checkpoints_in(tmp_path / "run/checkpoints/network-000")) == [2, 5, 6]


def test_a_finished_run_is_not_trained_again(whole, monkeypatch):
    monkeypatch.setattr(train_module, "train_network", lambda *_: pytest.fail("trained again"))
    assert go(whole).failed == {}


class Stop(Exception):
    pass


@pytest.mark.parametrize("state_seconds", [0.0, 1e9])
def test_a_run_killed_before_its_last_checkpoint_writes_it_when_started_again(
    whole, tmp_path, monkeypatch, state_seconds
):
    def killed(*_):
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(keeping, "STATE_SECONDS", state_seconds)
        patch.setattr(keeping, "save_checkpoint", killed)
        patch.setattr(Run, "checkpoint_epochs", {3})
        with pytest.raises(Stop):
            go(tmp_path / "run")
    assert accord.open(tmp_path / "run/test", networks=[0]).epochs == 4  # all is recorded
    assert go(tmp_path / "run").failed == {}
    for name in ("network-000", "network-001"):
        again, before = (
            load_checkpoint(checkpoints_in(out / "checkpoints" / name)[3])
            for out in (tmp_path / "run", whole)
        )
        assert all(torch.equal(again[key], before[key]) for key in before)


@pytest.mark.parametrize("gone", ["state", "epoch-0003"])
def test_a_finished_run_is_not_trained_again_for_a_file_that_was_removed(
    tmp_path, monkeypatch, gone
):
    go(tmp_path / "run")
    for path in (tmp_path / "run").glob(f"checkpoints/*/{gone}.safetensors"):
        path.unlink()
    monkeypatch.setattr(train_module, "train_network", lambda *_: pytest.fail("trained again"))
    assert go(tmp_path / "run").failed == {}


@pytest.mark.parametrize("gone", ["test", "test/network-001", "train", "test-swa"])
def test_what_was_removed_of_a_record_is_recorded_again(tmp_path, gone):
    out = tmp_path / "run"
    text = changed(("checkpoints = 2", 'averages = ["swa"]\nevery = 2'))
    go(out, text)
    before = {split: labels_in(out, split) for split in ("test", "train", "test-swa")}
    shutil.rmtree(out / gone)
    go(out, text)
    for split, labels in before.items():
        np.testing.assert_array_equal(labels_in(out, split), labels)


def test_a_network_without_checkpoints_to_keep_is_finished(tmp_path, monkeypatch):
    guessing = changed((SMALL, 'network = "random"'), ("epochs = 4", "epochs = 1"))
    none_asked = changed(("checkpoints = 2", "checkpoints = 0"), ("epochs = 4", "epochs = 1"))
    for name, text in (("guessing", guessing), ("none", none_asked)):
        go(tmp_path / name, text)
    monkeypatch.setattr(train_module, "train_network", lambda *_: pytest.fail("trained again"))
    for name, text in (("guessing", guessing), ("none", none_asked)):
        assert go(tmp_path / name, text).failed == {}


@pytest.mark.parametrize("state_seconds", [0.0, 1e9])
def test_an_interrupted_run_goes_on_to_the_same_bits(whole, tmp_path, monkeypatch, state_seconds):
    monkeypatch.setattr(keeping, "STATE_SECONDS", state_seconds)

    def stop(event):
        if (event.network, event.epoch) == (1, 2.0):
            raise Stop

    with pytest.raises(Stop):
        go(tmp_path / "run", progress=stop)
    assert load_state(tmp_path / "run/checkpoints/network-000").epochs == 4
    go(tmp_path / "run")
    for split in ("test", "train"):
        np.testing.assert_array_equal(labels_in(tmp_path / "run", split), labels_in(whole, split))


def test_progress_counts_the_chosen_networks_alone(tmp_path):
    seen = []
    text = changed(("epochs = 4", "epochs = 1"))
    go(tmp_path / "run", text, networks=[1], progress=seen.append)
    assert [(event.network, event.networks, event.epoch) for event in seen] == [(1, 1, 1.0)]


def test_what_was_finished_before_counts_as_progress_once_another_is_trained(tmp_path):
    seen = []
    text = changed(("epochs = 4", "epochs = 2"), ("networks = 2", "networks = 3"))
    go(tmp_path / "run", text, networks=[0, 2])
    go(tmp_path / "run", text, progress=seen.append)
    assert [(event.network, event.epoch) for event in seen] == [(0, 2), (2, 2), (1, 1), (1, 2)]
    assert {(event.networks, event.epochs) for event in seen} == {(3, 2)}
    losses = accord.open(tmp_path / "run/test", networks=[0]).networks_info[0].metrics
    assert seen[0].loss == losses[-1]["loss"]
    seen.clear()
    go(tmp_path / "run", text, progress=seen.append)
    assert seen == []


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

    go(out, text, progress=progress, **options)
    return seen


def test_small_networks_train_in_one_thread_and_large_ones_in_all(tmp_path, three_threads):
    assert threads_seen(tmp_path / "run", MIXED) == {0: {1}, 1: {3}}
    assert torch.get_num_threads() == 3
    assert threads_seen(tmp_path / "apart", MIXED, networks=[1]) == {1: {3}}


@pytest.mark.parametrize("name", THREAD_SETTINGS)
def test_who_sets_the_number_of_threads_decides(tmp_path, monkeypatch, three_threads, name):
    monkeypatch.setenv(name, "3")
    assert threads_seen(tmp_path / "run") == {0: {3}, 1: {3}}


def test_the_number_of_threads_comes_back_after_an_interruption(tmp_path, three_threads):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:  # and held: it keeps the frames alive
        go(tmp_path / "run", progress=interrupt)
    assert torch.get_num_threads() == 3
    assert caught.type is KeyboardInterrupt


def test_a_small_run_has_the_same_bits_however_many_threads_there_are(
    whole, tmp_path, three_threads
):
    go(tmp_path / "run")
    ours, theirs = (
        load_checkpoint(out / "checkpoints" / "network-000" / "epoch-0003.safetensors")
        for out in (tmp_path / "run", whole)
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_what_follows_from_the_data_is_no_option(tmp_path):
    for asked, words in (
        ((SMALL, f"{SMALL[:-2]}, classes = 2 }}"), "small-cnn: classes follows from the data"),
        ((SMALL, f'{SMALL}\nloss = {{ kind = "elr", samples = 3 }}'), "elr: samples follows"),
    ):
        with pytest.raises(ChoiceError, match=words):
            go(tmp_path / "run", changed(asked))
        assert not (tmp_path / "run").exists()


def test_a_table_is_not_given_to_a_network_of_images(tmp_path):
    (tmp_path / "own.csv").write_text("size,label\n1,a\n2,b\n3,a\n4,b\n")
    data = f"kind = 'csv'\npath = '{tmp_path}/own.csv'\nheld_out = 0.5"
    pairs = (('kind = "digits"\nper_class = 20', data), ('augment = ["shift"]', ""))
    with pytest.raises(SpecError, match=r'small-cnn takes images, but csv is a table: .*"mlp"'):
        go(tmp_path / "run", changed(*pairs))
    assert not (tmp_path / "run").exists()


def test_a_run_does_not_go_on_with_other_data(tmp_path):
    def write(*columns):
        rows = "".join(f"{n},{100 * n},{n % 2}\n" for n in range(40))
        (tmp_path / "own.csv").write_text(",".join(columns) + "\n" + rows)

    data = f"kind = 'csv'\npath = '{tmp_path}/own.csv'\nheld_out = 0.5"
    text = changed(
        ('kind = "digits"\nper_class = 20', data),
        ('augment = ["shift"]', ""),
        (SMALL, 'network = "mlp"'),
    )
    write("a", "b", "label")
    go(tmp_path / "run", text, networks=[0])
    write("b", "a", "label")
    with pytest.raises(SourceError, match="the run began with other training data: columns was"):
        go(tmp_path / "run", text, networks=[1])


def test_a_last_batch_of_one_is_named(tmp_path):
    text = changed(
        (SMALL, 'network = "resnet18"\noptions = { width = 8 }'), ("batch = 64", "batch = 199")
    )  # of 200 samples
    failed = go(tmp_path / "run", text, networks=[0]).failed
    assert "the last batch of an epoch has one sample, but the network needs more" in failed[0]
    assert "Choose another train.batch" in failed[0]


def test_an_oracle_needs_two_classes_that_are_left(tmp_path):
    text = changed(("rate = 0.4", "rate = 1.0"), ('augment = ["shift"]', "clean_only = true"))
    with pytest.raises(SpecError, match="clean_only leaves 0 samples of fewer than two classes"):
        go(tmp_path / "run", text)


def test_an_image_that_cannot_be_read_leaves_no_run(tmp_path, monkeypatch):
    def unreadable(_):
        raise SourceError("a.png: cannot be read as an image")

    monkeypatch.setattr("accord.training._run.measure_input_schema", unreadable)
    with pytest.raises(SourceError, match=r"a\.png"):
        go(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_killed_again_and_again_gives_the_same_bits(whole, tmp_path):
    out = tmp_path / "run"
    for epochs in (1, 3, 6):
        kill_run_after(epochs, TEXT, out)
        assert check_record(out / "test").sound
    go(out)
    for split in ("test", "train"):
        np.testing.assert_array_equal(labels_in(out, split), labels_in(whole, split))


def test_networks_can_be_trained_apart_and_give_the_same(whole, tmp_path):
    go(tmp_path / "run", networks=[1])
    go(tmp_path / "run", networks=[0])
    np.testing.assert_array_equal(labels_in(tmp_path / "run"), labels_in(whole))
    with pytest.raises(ChoiceError, match="small: no network 5; there are 0, 1"):
        go(tmp_path / "run", networks=[5])
    with pytest.raises(ChoiceError, match=r"small: a network is selected twice in \[0, 1, 0\]"):
        go(tmp_path / "run", networks=[0, 1, 0])


def test_two_processes_on_one_network_are_refused(tmp_path):
    def meanwhile(*_):
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            go(tmp_path / "run", networks=[0])
        raise Stop

    with pytest.raises(Stop):
        go(tmp_path / "run", progress=meanwhile)


def test_a_changed_spec_is_refused_with_the_difference(whole):
    with pytest.raises(SpecError, match=r'(?s)another spec.*-  "rate": 0\.4.*\+  "rate": 0\.2'):
        go(whole, changed(("rate = 0.4", "rate = 0.2")))


def test_a_member_whose_loss_is_no_number_is_stopped_and_the_others_go_on(tmp_path):
    text = changed(("networks = 2", "networks = [{ lr = 1e30 }, {}]"), ("epochs = 4", "epochs = 2"))
    result = go(tmp_path / "run", text)
    assert list(result.failed) == [0]
    assert "the loss became" in result.failed[0]
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2


def test_a_member_whose_weights_blow_up_in_the_last_step_is_stopped_too(tmp_path):
    text = changed(
        (SMALL, 'network = "mlp"\noptions = { widths = [8] }'),
        ("networks = 2", "networks = [{ lr = 1e30 }, {}]"),
        ("epochs = 4", "epochs = 2"),
        ("batch = 64", "batch = 200"),  # one step: its loss is that of the first weights
    )
    result = go(tmp_path / "run", text)
    assert list(result.failed) == [0]
    assert re.fullmatch(
        r"the predictions of epoch 0 \(progress 1\), after learning rate 1e\+30, cannot be "
        r"recorded: probabilities must be finite; .* a smaller rate, .* may help\.",
        result.failed[0],
    )
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2
    assert checkpoints_in(tmp_path / "run/checkpoints/network-000") == {}


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

    def __init__(self, path, spec):
        super().__init__(path, spec, device=torch.device("cpu"))

    def batches(self, split, network):
        self.device = torch.device("cpu")
        try:
            return super().batches(split, network)
        finally:
            self.device = torch.device("cuda")


def train_on_fake_gpu(monkeypatch, out, text, results=(), *, obstacle=None, seen=None):
    monkeypatch.setattr(train_module, "train_lockstep", fake_lockstep(results, seen=seen))
    monkeypatch.setattr(train_module, "lockstep_obstacle", lambda _: obstacle)
    run, notes = FakeGpuRun(out, parse_spec(text)), []
    run.device = torch.device("cuda")
    return list(train_module._train_networks(run, list(run.networks), None, notes)), notes


TWO_EPOCHS = ("epochs = 4", "epochs = 2")


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
    monkeypatch.setattr(train_module, "train_network", lambda run, network: iter([network.number]))
    events, notes = train_on_fake_gpu(
        monkeypatch, tmp_path / "run", text, obstacle="they are on disk"
    )
    assert events == [0, 1]
    assert notes == ["the networks were trained one after the other: they are on disk"]


def test_what_cannot_begin_leaves_nothing_that_bars_its_cure(tmp_path):
    with pytest.raises(ChoiceError, match=r"holds out none\. Increase the share"):
        go(tmp_path / "run", changed(("per_class = 20", "per_class = 1\nvalidation = 0.01")))
    assert not (tmp_path / "run").exists()
    text = changed(
        ("per_class = 20", "per_class = 1\nvalidation = 0.2"), ("epochs = 4", "epochs = 1")
    )
    assert go(tmp_path / "run", text).failed == {}


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"small-cnn"', '"small-cmn"', "Did you mean 'small-cnn'"),
        ("width = 4", "widht = 4", "Did you mean 'width'"),
        ("width = 4", "width = -4", "small-cnn cannot be built with width=-4"),
        ("batch = 64", 'batch = 64\nloss = "elrr"', "Did you mean 'elr'"),
        ("networks = 2", 'networks = [{}, { network = "mlpp" }]', "Did you mean 'mlp'"),
    ],
)
def test_what_cannot_be_built_is_refused_before_the_folder_is_taken(tmp_path, old, new, match):
    text = changed((old, new))
    with pytest.raises(ChoiceError, match=match):
        plan_run(parse_spec(text), tmp_path / "run")
    with pytest.raises(ChoiceError, match=match):
        go(tmp_path / "run", text)
    assert not (tmp_path / "run").exists()


def test_like_networks_are_tried_once_and_those_of_a_run_that_began_not_at_all(whole, monkeypatch):
    built = []
    monkeypatch.setattr(members_module, "build_network", lambda *given: built.append(given))
    spec = parse_spec(changed(("networks = 2", 'networks = [{}, {}, { network = "mlp" }]')))
    members_module.check_networks(spec, prepare_data(spec))
    assert [member.number for _, member, _ in built] == [0, 2]
    assert go(whole).failed == {}
    assert len(built) == 2


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "own_of_a_run.py").write_text(
        "from torch import nn\n"
        "def net(classes, channels, size, *, more=0):\n"
        "    inputs = channels * size[0] * size[1]\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes + more))\n"
    )
    yield
    sys.modules.pop("own_of_a_run", None)


@pytest.mark.parametrize("members", ["", "\nbatch_ensemble = 2"])
def test_an_own_network_of_wrong_shape_is_refused_before_the_folder_is_taken(
    tmp_path, own, members
):
    text = changed((SMALL, f'network = "own_of_a_run:net"\noptions = {{ more = 1 }}{members}'))
    said = r"own_of_a_run:net must return .* of 10 classes; got a tensor of shape \((2|4), 11\)"
    with pytest.raises(ChoiceError, match=said):
        plan_run(parse_spec(text), tmp_path / "run")
    with pytest.raises(ChoiceError, match=said):
        go(tmp_path / "run", text)
    assert not (tmp_path / "run").exists()


def test_an_own_network_is_trained_as_if_it_had_not_been_tried(tmp_path, own, monkeypatch):
    text = changed((SMALL, 'network = "own_of_a_run:net"'), ("epochs = 4", "epochs = 1"))
    go(tmp_path / "tried", text)
    monkeypatch.setattr(members_module, "check_logits", lambda *_, **__: None)
    go(tmp_path / "untried", text)
    np.testing.assert_array_equal(labels_in(tmp_path / "tried"), labels_in(tmp_path / "untried"))


def test_what_a_file_of_weights_lacks_is_told_once_for_all_networks(tmp_path, caplog):
    weights = build("small-cnn", classes=3, channels=1, size=8, seed=0, width=4).state_dict()
    torch.save(weights, tmp_path / "weights.pth")
    text = changed((SMALL, f"{SMALL}\npretrained = '{tmp_path}/weights.pth'"), ("= 4\n", "= 1\n"))
    go(tmp_path / "run", text)
    (told,) = caplog.messages
    assert "has 3 classes, the network 10: its last layer" in told


def test_validation_is_held_out_and_noisy(tmp_path):
    text = changed(
        ("per_class = 20", "per_class = 20\nvalidation = 0.2"),
        ('["test", "train"]', '["validation", "train"]'),
        ("epochs = 4", "epochs = 1"),
    )
    go(tmp_path / "run", text)
    held, train = accord.open(tmp_path / "run/validation"), accord.open(tmp_path / "run/train")
    assert (held.samples, train.samples) == (40, 160)
    wrong = (held.given != held.truth).sum() + (train.given != train.truth).sum()
    assert wrong == 80


def test_an_oracle_trains_on_the_right_labels_alone(tmp_path):
    text = changed(("epochs = 4", "epochs = 1\nclean_only = true"))
    go(tmp_path / "run", text)
    train = accord.open(tmp_path / "run/train")
    assert train.samples == 120
    np.testing.assert_array_equal(train.given, train.truth)


def test_an_oracle_needs_labels_that_are_known_to_be_wrong(tmp_path):
    text = changed(
        ("epochs = 4", "epochs = 1\nclean_only = true"),
        ('[noise]\nkind = "symmetric"\nrate = 0.4\n', ""),
    )
    with pytest.raises(SpecError, match=r"small: train\.clean_only .* adds no noise.*Set noise"):
        go(tmp_path / "run", text)
    assert not (tmp_path / "run").exists()


def test_an_oracle_takes_the_clean_labels_that_the_data_bring(tmp_path):
    rows = "".join(f"{n},{n % 2},{0 if n < 4 else n % 2}\n" for n in range(40))
    (tmp_path / "own.csv").write_text("size,clean,label\n" + rows)  # rows 1 and 3 are wrong
    data = f"kind = 'csv'\npath = '{tmp_path}/own.csv'\ntruth = 'clean'\nheld_out = 0.5"
    text = changed(
        ('kind = "digits"\nper_class = 20', data),
        ('[noise]\nkind = "symmetric"\nrate = 0.4\n', ""),
        ('augment = ["shift"]', "clean_only = true"),
        ('network = "small-cnn"\noptions = { width = 4 }', 'network = "mlp"'),
    )
    own = parse_spec(text)
    train, everything = (
        prepare_data(own.model_copy(update={"train": asked})).splits["train"]
        for asked in (own.train, own.train.model_copy(update={"clean_only": False}))
    )
    np.testing.assert_array_equal(train.labels, train.truth)
    assert len(train) == (everything.labels == everything.truth).sum() < len(everything)


def test_a_batch_ensemble_is_recorded_member_by_member(tmp_path):
    text = changed(
        ("networks = 2", "networks = 1\nbatch_ensemble = 3"), ("epochs = 4", "epochs = 2")
    )
    go(tmp_path / "run", text)
    labels = labels_in(tmp_path / "run")
    assert labels.shape == (3, 2, 719)
    assert (labels[0] != labels[1]).any()


def test_a_random_member_guesses_anew_at_every_epoch(tmp_path):
    text = changed(
        ("networks = 2", 'networks = [{}, { network = "random", options = {} }]'),
        ("epochs = 4", "epochs = 3"),
    )
    go(tmp_path / "run", text)
    guesses = labels_in(tmp_path / "run")[1]
    truth = accord.open(tmp_path / "run/test").truth
    assert abs((guesses == truth).mean() - 0.1) < 0.03
    assert (guesses[0] != guesses[1]).mean() > 0.8


def test_fractions_of_an_epoch_are_recorded_and_resumed(tmp_path):
    text = changed(("[record]", "[record]\nevery = 0.5"), ("epochs = 4", "epochs = 2"))
    go(tmp_path / "one", text)
    assert accord.open(tmp_path / "one/test").progress == (0.5, 1.0, 1.5, 2.0)

    def stop(event):
        if event.epoch == 1.5:
            raise Stop

    with pytest.raises(Stop):
        go(tmp_path / "two", text, progress=stop)
    go(tmp_path / "two", text)
    np.testing.assert_array_equal(labels_in(tmp_path / "two"), labels_in(tmp_path / "one"))


def test_the_plan_says_what_would_be_done(whole, tmp_path):
    spec = parse_spec(TEXT)
    plan = plan_run(spec, tmp_path / "new")
    assert (plan.epochs, plan.recorded, plan.samples) == (4, {}, {"test": 719, "train": 200})
    assert plan.record_bytes == 2 * 4 * 919
    assert plan_run(spec, whole).recorded == {0: 4, 1: 4}
    assert "network 1: small-cnn, sgd 0.02, cross-entropy, seed 1: 4 of 4 recorded" in plan_text(
        spec, plan_run(spec, whole), whole
    )
    assert not (tmp_path / "new").exists()
    assert default_out(spec).name == f"small-{spec.digest()}"


def test_the_plan_for_a_folder_of_another_spec_is_refused(whole):
    with pytest.raises(SpecError, match=r'holds a run of another spec(?s:.*)"epochs": 5'):
        plan_run(parse_spec(changed(("epochs = 4", "epochs = 5"))), whole)


def test_the_command_plans_lists_trains_and_names_mistakes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(changed(("epochs = 4", "epochs = 1")))
    assert run_command(["train", "spec.toml", "--plan"]) == 0
    assert "2 networks, 1 epoch, 10 classes" in capsys.readouterr().out
    assert run_command(["train", "--list"]) == 0
    assert "network/densenet121" in capsys.readouterr().out.splitlines()
    assert run_command(["train", "spec.toml", "--out", "mine"]) == 0
    said = capsys.readouterr().err
    assert "training network 1, epoch 1 of 1" in said
    assert "mine: trained. Next: accord score mine/test" in said
    assert run_command(["score", "mine/test"]) == 0
    (tmp_path / "spec.toml").write_text(changed(("epochs = 4", "epoch = 1")))
    assert run_command(["train", "spec.toml"]) == 2
    assert "Did you mean 'epochs'?" in capsys.readouterr().err
    assert run_command(["train"]) == 2
    (tmp_path / "spec.toml").write_text(
        changed(('kind = "digits"', 'kind = "cifar10"\npath = "no"'))
    )
    assert run_command(["train", "spec.toml"]) == 1


def test_data_that_are_missing_are_refused_before_anything_is_trained(tmp_path):
    text = changed(('kind = "digits"', f'kind = "cifar10"\npath = "{tmp_path}/nowhere"'))
    with pytest.raises(SourceError, match="nowhere"):
        go(tmp_path / "run", text)
    with pytest.raises(ChoiceError, match="Did you mean 'digits'"):
        go(tmp_path / "run2", changed(('kind = "digits"', 'kind = "digit"')))


def test_everything_listed_has_a_name_of_its_own():
    names = registered_names()
    assert len(set(names)) == len(names)
    for kind in ("reader", "noise", "network", "loss", "optimizer", "schedule", "augment"):
        assert any(name.startswith(f"{kind}/") for name in names)


AVERAGES = ("checkpoints = 2", 'checkpoints = 2\naverages = ["ema", "swa"]')


def test_averaged_networks_are_recorded_beside_the_others(tmp_path, whole):
    assert go(tmp_path / "run", changed(AVERAGES)).failed == {}
    assert np.array_equal(labels_in(tmp_path / "run"), labels_in(whole))
    moving = accord.open(tmp_path / "run/test-ema")
    mean = accord.open(tmp_path / "run/test-swa")
    assert (moving.epochs, mean.epochs) == (4, 1)
    assert not np.array_equal(moving.labels[:], labels_in(whole))
    folders = [out / "checkpoints/network-000" for out in (tmp_path / "run", whole)]
    kept, plain = (load_checkpoint(checkpoints_in(folder)[3]) for folder in folders)
    assert kept.keys() == plain.keys()


def test_averages_go_on_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "STATE_SECONDS", 0.0)
    text = changed(AVERAGES, ("networks = 2", "networks = 1"))
    go(tmp_path / "whole", text)

    def stop(event):
        if event.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", text, progress=stop)
    go(tmp_path / "cut", text)
    for record in ("test", "test-ema", "test-swa"):
        assert np.array_equal(
            labels_in(tmp_path / "cut", record), labels_in(tmp_path / "whole", record)
        )


NARROW = {
    "mlp": "{ widths = [8] }",
    "small-cnn": "{ width = 4 }",
    "resnet18": "{ width = 8 }",
    "resnet32": "{ width = 4 }",
    "resnet50": "{ width = 4 }",
    "densenet121": "{ growth = 4 }",
    "wideresnet28-10": "{ widen = 1 }",
}


@pytest.mark.parametrize(
    "name",
    [
        one
        for one in registered_names()
        if not one.startswith("reader/")  # each has a layout of its own: tests/data/readers
        and one not in ("noise/superclass", "noise/file")
    ],
)
def test_whatever_is_listed_trains_for_one_epoch(tmp_path, name):
    kind, _, what = name.partition("/")
    extra = "\nmapping = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]" if what == "map" else ""
    options = {
        "noise": ('kind = "symmetric"\nrate = 0.4', f'kind = "{what}"'
                  + ("" if what == "none" else "\nrate = 0.4") + extra),
        "loss": ("batch = 64", f'batch = 64\nloss = "{what}"'),
        "optimizer": ("{ lr = 0.02 }", f'{{ kind = "{what}", lr = 0.02 }}'),
        "schedule": ("batch = 64", f'batch = 64\nschedule = "{what}"'),
        "augment": ('["shift"]', f'["{what}"]'),
        "network": (SMALL, f'network = "{what}"\noptions = {NARROW.get(what, "{}")}'),
    }  # fmt: skip
    text = changed(options[kind], ("epochs = 4", "epochs = 1"), ("networks = 2", "networks = 1"))
    assert go(tmp_path / "run", text).failed == {}
    assert accord.open(tmp_path / "run/test").epochs == 1


def test_a_table_of_ones_own_is_trained_on(tmp_path):
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
    go(tmp_path / "run", text)
    record = accord.open(tmp_path / "run/test")
    assert record.class_names == ("no", "yes")
    assert record.score(["majority"])[0].accuracy > 0.85
    with pytest.raises(SpecError, match="tables cannot be augmented"):
        go(tmp_path / "other", text.replace("epochs = 20", 'epochs = 20\naugment = ["flip"]'))


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
    go(tmp_path / "run", text)
    record = accord.open(tmp_path / "run/test")
    assert record.class_names == ("dark", "light")
    assert record.ids[0].endswith(".png")
    assert record.score(["majority"])[0].accuracy == 1.0


def write_table(path, train, test):
    labels = {"train": np.asarray(train), "test": np.asarray(test)}
    generator = np.random.default_rng(0)
    arrays = {f"{part}_inputs": generator.normal(size=(len(labels[part]), 3)) for part in labels}
    np.savez(path, **arrays, **{f"{part}_labels": labels[part] for part in labels})
    return f"""
name = "table"
[data]
kind = "npz"
path = "{path}"
[train]
networks = 1
network = "mlp"
epochs = 1
"""


@pytest.mark.parametrize(
    ("test", "note"),
    [
        ([0, 1, 2], None),
        ([0, 1], None),
        ([7, 7, 0], "has the class 7, but 2 of 3 test samples do: no network can predict"),
        ([3, 4, 5, 6, 7, 9], "has the classes 3, 4, 5, 6, 7 and 1 more, but 6 of 6 test"),
        ([3, 4, 5, 6, 7], "has the classes 3, 4, 5, 6, 7, but 5 of 5 test samples do"),
    ],
)
def test_classes_that_are_tested_and_never_taught_are_noted(tmp_path, test, note):
    spec = parse_spec(write_table(tmp_path / "mine.npz", [0, 1, 2, 0], test))
    plan = plan_run(spec, tmp_path / "run")
    assert [note in one for one in plan.notes] == ([] if note is None else [True])
    assert train(spec, tmp_path / "run", source="").notes == plan.notes


def test_wrong_labels_do_not_stand_for_the_right_ones_in_what_is_taught(tmp_path):
    text = write_table(tmp_path / "mine.npz", [0, 1, 2, 0], [0, 1, 2])
    noise = '[noise]\nkind = "map"\nrate = 1\nmapping = [1, 2, 1]\n'
    (note,) = prepare_data(parse_spec(text + noise)).notes
    assert "has the class 0" in note


def test_labels_weights_and_networks_are_looked_for_below_the_root(tmp_path, monkeypatch):
    np.save(tmp_path / "noisy.npy", np.arange(200) % 10)
    noise = ('kind = "symmetric"\nrate = 0.4', 'kind = "file"\npath = "noisy.npy"')
    rooted = parse_spec(f'root = "{tmp_path}"\n' + changed(noise))
    material = prepare_data(rooted)
    np.testing.assert_array_equal(material.splits["train"].labels, np.arange(200) % 10)

    (tmp_path / "tiny").mkdir()
    train = {"pretrained": "weights.safetensors", "network": "transformers:tiny"}
    spec = rooted.model_copy(update={"train": rooted.train.model_copy(update=train)})
    asked = []
    monkeypatch.setattr(members_module, "build", lambda name, **facts: asked.append((name, facts)))
    (member, _) = network_specs(spec)
    members_module.build_network(spec, member, material)
    tiny = f"transformers:{tmp_path / 'tiny'}"
    assert [(name, facts["pretrained"]) for name, facts in asked] == [
        (tiny, tmp_path / "weights.safetensors")
    ]
    monkeypatch.setattr(
        "accord.training._prepared_data.make_batches", lambda *_, **facts: facts["network"]
    )
    assert Run(tmp_path / "run", spec).batches("train", member) == tiny


def test_texts_need_a_network_that_reads_them(tmp_path):
    (tmp_path / "train.tsv").write_text("sentence\tlabel\ngood\t1\nbad\t0\n")
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nfine\t1\npoor\t0\n")
    text = changed(
        ('kind = "digits"\nper_class = 20', f'kind = "sst2"\npath = "{tmp_path}"\ncomplete = false')
    )
    with pytest.raises(SpecError, match="texts require a network of transformers"):
        go(tmp_path / "run", text)


def test_what_members_of_a_batch_ensemble_own_is_not_drawn_as_the_weights_are():
    text = changed(
        (SMALL, 'network = "mlp"\noptions = { widths = [64] }\nbatch_ensemble = 4'),
        ("networks = 2", "networks = 1"),
    )
    spec = parse_spec(text)
    network = build_network(spec, network_specs(spec)[0], prepare_data(spec))
    owned = network.state_dict()
    (first,) = [one for name, one in owned.items() if name.endswith("hidden.0.weight")]
    for name, vector in owned.items():
        if name.endswith(".r"):
            count = min(first.numel(), vector.numel())
            pair = torch.stack([first.flatten()[:count], vector.flatten()[:count]])
            assert abs(torch.corrcoef(pair)[0, 1]) < 0.2
