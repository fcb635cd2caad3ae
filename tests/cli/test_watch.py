import json
import threading

import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord._recorder import Recorder
from accord.analysis import network_agreement
from accord.analysis._watch import watch
from accord.cli import watch as module
from accord.cli.app import run

SAMPLES, CLASSES, EPOCHS = 600, 5, 40


def run_rows(*, end, networks=3):
    chances = right_chances(EPOCHS, end=end)
    return draw_run(chances, networks=networks, samples=SAMPLES, classes=CLASSES)


def write(path, rows, *, lengths=None, spoilt=None):
    for network in range(rows.networks):
        with Recorder(path, network=network, samples=SAMPLES, classes=CLASSES) as recorder:
            for epoch in range((lengths or [EPOCHS] * 9)[network]):
                labels = rows.read_labels([network], [epoch], slice(None))[0, 0]
                recorder.record(np.zeros_like(labels) if network == spoilt else labels)
    return str(path)


@pytest.fixture
def overfitted(tmp_path):
    return write(tmp_path / "overfitted", run_rows(end=0.5))


@pytest.fixture
def clean(tmp_path):
    return write(tmp_path / "clean", run_rows(end=None))


def test_json_holds_the_alarm_the_epoch_and_the_agreement(accord, overfitted):
    status, out, err = accord("watch", overfitted, "--json")
    found = json.loads(out)
    rows = run_rows(end=0.5)
    assert (status, err) == (0, "")
    assert found["alarm"] is True
    assert found["epoch"] == found["best_epoch"] == watch(rows).epoch
    assert found["progress"] == found["epoch"] + 1
    np.testing.assert_allclose(found["agreement"], network_agreement(rows))
    np.testing.assert_allclose(found["smoothed"], watch(rows).smoothed)
    assert found["sure"] >= 0.99
    assert found["bad_networks"] == {}


def test_json_of_a_clean_run_has_no_epoch(accord, clean):
    status, out, _ = accord("watch", clean, "--json")
    found = json.loads(out)
    assert (status, found["alarm"], found["epoch"]) == (0, False, None)
    assert len(found["agreement"]) == EPOCHS


def test_text_shows_the_curve_and_the_verdict(accord, overfitted, clean):
    status, out, err = accord("watch", overfitted)
    assert (status, err) == (0, "")
    assert out.startswith(f"{overfitted}: 3 networks, 40 epochs, 600 samples\n")
    epochs = [line.split()[0] for line in out.splitlines() if line.endswith("#")]
    assert epochs == [str(epoch) for epoch in range(1, 41, 2)]
    assert "overfitting detected: agreement with leave-one-out fell" in out
    assert f"Last good epoch: after {watch(run_rows(end=0.5)).epoch + 1} of 40 epochs" in out
    _, out, _ = accord("watch", clean)
    assert "no alarm: " in out
    assert "Best epoch by majority vote: " in out


def test_a_bad_network_is_named_with_the_cure(accord, tmp_path):
    path = write(tmp_path / "spoilt", run_rows(end=None, networks=4), spoilt=2)
    _, out, _ = accord("watch", path)
    assert "warning: network 2 is constant. To leave out: --networks 0,1,3" in out
    assert json.loads(accord("watch", path, "--json")[1])["bad_networks"] == {"2": "constant"}
    _, out, _ = accord("watch", path, "--networks", "0,1,3")
    assert "warning" not in out


def test_networks_of_unequal_length_are_cut_with_a_note(accord, tmp_path):
    path = write(tmp_path / "unequal", run_rows(end=None), lengths=[9, 4, 7])
    status, out, err = accord("watch", path, "--json")
    assert status == 0
    assert len(json.loads(out)["agreement"]) == 4
    assert "watching the 4 epochs that all networks have" in err


def test_selected_networks_of_equal_length_have_no_note(accord, tmp_path):
    path = write(tmp_path / "unequal", run_rows(end=None), lengths=[7, 4, 7])
    status, out, err = accord("watch", path, "--json", "--networks", "0,2")
    assert (status, err) == (0, "")
    assert len(json.loads(out)["agreement"]) == 7


def test_one_network_is_an_error(accord, clean):
    status, out, err = accord("watch", clean, "--networks", "1")
    assert (status, out) == (2, "")
    assert "agreement between networks needs two; there is one" in err


def test_a_missing_record_is_an_error(accord, tmp_path):
    for options in ([], ["--follow", "--idle", "0"]):
        status, out, err = accord("watch", tmp_path / "nowhere", *options)
        assert (status, out) == (1, "")
        assert "nowhere: no such file or folder" in err


def test_following_prints_each_epoch_and_stops_when_idle(accord, clean):
    status, out, err = accord("watch", clean, "--follow", "--idle", "0", "--every", "0.01")
    assert (status, err) == (0, "")
    counts = ["after 1 epoch", *(f"after {done} epochs" for done in range(2, 41))]
    assert [line.split(":")[0] for line in out.splitlines()] == counts
    assert "alarm" not in out


def test_following_until_the_alarm_stops_there_with_status_3(accord, overfitted, clean):
    status, out, _ = accord("watch", overfitted, "--follow", "--until-alarm")
    assert status == 3
    last = out.splitlines()[-1]
    assert "overfitting detected: agreement with leave-one-out dropped by" in last
    assert "Last good epoch: " in last
    assert len(out.splitlines()) < EPOCHS
    assert accord("watch", overfitted, "--until-alarm")[0] == 3
    assert accord("watch", clean, "--until-alarm")[0] == 0
    assert accord("watch", overfitted, "--follow", "--idle", "0")[0] == 0


def test_following_with_json_prints_json_alone(accord, overfitted):
    status, out, err = accord("watch", overfitted, "--follow", "--idle", "0", "--json")
    assert status == 0
    assert json.loads(out)["alarm"] is True
    assert err.count("after ") >= EPOCHS
    assert accord("watch", overfitted, "--follow", "--until-alarm", "--json")[0] == 3


def test_following_waits_for_what_is_still_to_come(capsys, tmp_path, monkeypatch):
    """No clock: every wait lets the writer go on by one step, until it has no more."""
    rows, path = run_rows(end=None), tmp_path / "growing"
    steps = iter([(0, 1), (0, 3), (1, 1), (1, 2), (1, 3)])

    def step(_):
        write_one(path, rows, *next(steps))

    write_one(path, rows, 0, 0)
    monkeypatch.setattr(module.time, "sleep", step)
    with pytest.raises(StopIteration):
        run(["watch", str(path), "--follow"])
    printed = capsys.readouterr()
    document = [line.split(":")[0] for line in printed.out.splitlines()]
    assert document == ["after 1 epoch", "after 2 epochs", "after 3 epochs"]
    waited = [line for line in printed.err.splitlines() if "waiting" in line]
    assert len(waited) == 2
    assert "has no epochs yet" in waited[0]
    assert "one network so far" in waited[1]


def test_following_waits_for_the_record_itself(capsys, tmp_path, monkeypatch):
    rows, path = run_rows(end=None), tmp_path / "growing"
    steps = iter([(0, 1), (1, 1)])
    monkeypatch.setattr(module.time, "sleep", lambda _: write_one(path, rows, *next(steps)))
    with pytest.raises(StopIteration):
        run(["watch", str(path), "--follow", "--until-alarm"])
    printed = capsys.readouterr()
    assert printed.out.startswith("after 1 epoch: agreement")
    assert printed.err.startswith(f"accord: waiting: {path}: there is no record yet. Is the path ")


def test_following_waits_for_no_record_in_a_folder_that_is_not_there(accord, tmp_path, monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: pytest.fail("waited"))
    path = tmp_path / "mistyped" / "record"
    for named in (path, f"file://{path}"):
        status, out, err = accord("watch", named, "--follow")
        assert (status, out) == (1, "")
        assert f"{path}: there is no record, and no folder {path.parent} that could" in err


def test_following_waits_for_the_folder_too_where_the_wait_has_an_end(
    accord, tmp_path, monkeypatch
):
    rows, path = run_rows(end=None), tmp_path / "run" / "test"
    steps = iter([(0, 1), (1, 1)])
    monkeypatch.setattr(module.time, "sleep", lambda _: write_one(path, rows, *next(steps)))
    with pytest.raises(StopIteration):
        run(["watch", str(path), "--follow", "--idle", "600"])


def test_following_waits_for_a_record_in_an_object_store(capsys, monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: next(iter(())))
    with pytest.raises(StopIteration):
        run(["watch", "memory://nowhere/at/all", "--follow"])
    assert "waiting: memory://nowhere/at/all: there is no record yet" in capsys.readouterr().err


def write_one(path, rows, network, until, **options):
    sample_info = {"samples": SAMPLES, "classes": CLASSES} | options
    with Recorder(path, network=network, **sample_info) as recorder:
        for epoch in range(recorder.epochs, until):
            recorder.record(rows.read_labels([network], [epoch], slice(None))[0, 0])


def test_a_writer_in_another_thread_is_followed(accord, tmp_path):
    rows, path = run_rows(end=None), tmp_path / "growing"
    write_one(path, rows, 0, 1)

    def grow():
        for until in (1, 2, 3):
            write_one(path, rows, 0, until)
            write_one(path, rows, 1, until)

    writer = threading.Thread(target=grow)
    writer.start()
    status, out, _ = accord("watch", path, "--follow", "--idle", "1", "--every", "0.01")
    writer.join()
    assert status == 0
    assert out.count("agreement") == 3


def test_bad_options_are_refused(accord, clean):
    for options in (["--every", "0"], ["--idle", "-1"], ["--networks", "x"]):
        status, out, _ = accord("watch", clean, "--follow", *options)
        assert (status, out) == (2, "")


@pytest.mark.parametrize("option", ["--every", "--idle"])
def test_waits_are_refused_unless_the_record_is_followed(accord, clean, option):
    status, out, err = accord("watch", clean, option, "5")
    assert (status, out) == (2, "")
    assert f"accord: {option} requires --follow" in err
    assert "leave" in err


def write_trained_on(path, rows, **options):
    for network in range(rows.networks):
        sample_info = {"samples": SAMPLES, "classes": CLASSES} | options
        with Recorder(path, network=network, **sample_info) as recorder:
            for epoch in range(EPOCHS):
                recorder.record(rows.read_labels([network], [epoch], slice(None))[0, 0])
    return str(path)


@pytest.mark.parametrize(
    "options", [{"given": np.zeros(SAMPLES, int), "split": "part"}, {"split": "train"}]
)
def test_a_record_of_training_samples_is_watched_with_a_warning(accord, tmp_path, options):
    path = write_trained_on(tmp_path / "train", run_rows(end=0.5), **options)
    status, out, _ = accord("watch", path)
    assert status == 0
    assert "no verdict: the networks were trained on these samples" in out
    assert "detected" not in out
    found = json.loads(accord("watch", path, "--json")[1])
    assert (found["trained_on"], found["alarm"], found["epoch"]) == (True, False, None)
    _, out, err = accord("watch", path, "--follow", "--idle", "0", "--every", "0.01")
    assert "warning" not in out
    assert err.count("accord: warning: the networks were trained on") == 1


def test_following_warns_of_training_samples_once(capsys, tmp_path, monkeypatch):
    rows, path = run_rows(end=None), tmp_path / "growing"
    steps = iter([(1, 1), (0, 2), (1, 2), (0, 3), (1, 3)])
    monkeypatch.setattr(
        module.time, "sleep", lambda _: write_one(path, rows, *next(steps), split="train")
    )
    write_one(path, rows, 0, 1, split="train")
    with pytest.raises(StopIteration):
        run(["watch", str(path), "--follow"])
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err.count("warning: the networks were trained on") == 1


@pytest.mark.parametrize("split", ["test", "validation"])
def test_held_out_samples_with_given_labels_are_watched_without_a_warning(accord, tmp_path, split):
    sample_info = {"given": np.zeros(SAMPLES, int), "split": split}
    path = write_trained_on(tmp_path / "validation", run_rows(end=0.5), **sample_info)
    assert "warning" not in accord("watch", path)[1]
    assert json.loads(accord("watch", path, "--json")[1])["trained_on"] is False
    assert "warning" not in accord("watch", path, "--follow", "--idle", "0")[2]


def test_a_record_of_other_samples_is_watched_without_a_warning(accord, overfitted):
    assert "warning" not in accord("watch", overfitted)[1]
    assert json.loads(accord("watch", overfitted, "--json")[1])["trained_on"] is False
    assert accord("watch", overfitted, "--follow", "--idle", "0")[2] == ""


def test_one_epoch_is_singular(accord, tmp_path):
    path = write(tmp_path / "short", run_rows(end=None), lengths=[2, 1, 2])
    status, out, err = accord("watch", path)
    assert status == 0
    assert out.startswith(f"{path}: 3 networks, 1 epoch, 600 samples\n")
    assert "watching the 1 epoch that all networks have" in err
