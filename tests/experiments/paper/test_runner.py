"""What is missing is trained, nothing twice, and the paper's numbers stand beside ours."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import accord
from accord.errors import (
    ChoiceError,
    ClusterError,
    PredictionError,
    RecordBusy,
    SourceError,
    SpecError,
    TrainingError,
)
from accord.experiments.comparison._runs import train_here
from accord.experiments.paper import (
    SCALES,
    Cell,
    Result,
    Row,
    all_targets,
    build_spec,
    load_results,
    reproduce,
    result_text,
    status_of,
    write_summary,
)
from accord.experiments.paper._protocols import protocols
from accord.experiments.paper._required_runs import (
    effort_of,
    moments_left,
    run_folder,
    run_name,
    settle_scale,
    train_with_ray,
)
from accord.experiments.paper._results import SCALES_KEPT, load_result, row_of, save_result
from accord.store._packed import pack_record
from accord.training._input_schema import find_input_schema, save_input_schema
from accord.training._prepared_data import prepare_data
from accord.training.run import RunResult
from accord.training.spec import Spec

SMALL = protocols()["scale"]["stand-in"]["train"] | {
    "networks": 3,
    "network": "mlp",
    "options": {},
    "epochs": 4,
}
CELL = all_targets()["table1/cifar10/sym/40"]
KEPT = '{"format": 1, "target": "t", "says": "s", "scale": "stand-in", "rows": {}, %s}'


def run(target, workshop, **more):
    return reproduce(target, workshop, scale="stand-in", **more)


def test_the_rows_are_the_records_scores_beside_the_papers(workshop, trainer):
    result = run(CELL, workshop)
    (name,) = trainer.trained
    record = accord.open(workshop.out / "runs" / name / "test")
    for score in record.score():
        assert result.rows[score.rule].ours == 100 * score.accuracy
    assert result.rows["max-agreement"].paper == 90.0
    assert result.rows["probability-average"].paper_error is None
    assert result.rows["dawid-skene"].paper is None
    assert result.runs == {"noisy": [name]}
    assert result.seconds > 0
    assert "core, " in result.machine  # tests have one
    assert result.version == accord.__version__


def test_nothing_is_done_twice(workshop, trainer):
    first = run(CELL, workshop)
    assert run(CELL, workshop) == first
    (workshop.out / CELL.name / "stand-in.json").unlink()
    assert run(CELL, workshop).rows == first.rows
    assert len(trainer.trained) == 1


def test_targets_that_train_the_same_share_their_runs(workshop, trainer):
    run(all_targets()["figure5/cifar10/sym/40"], workshop)
    run(CELL, workshop)
    assert len(trainer.trained) == 2  # the noisy run, and the clean subset's
    assert len(set(trainer.trained)) == 2


def test_an_interrupted_target_goes_on_where_it_was(workshop):
    def stop_after(moments):
        def count(*_):
            nonlocal moments
            moments -= 1
            if moments == 0:
                raise KeyboardInterrupt

        return count

    undisturbed = run(CELL, replace(workshop, out=workshop.out / "undisturbed"))
    with pytest.raises(KeyboardInterrupt):
        run(CELL, replace(workshop, progress=stop_after(6)))
    folder = run_folder(workshop.out, build_spec(CELL.cells["noisy"], "stand-in"))
    assert moments_left(build_spec(CELL.cells["noisy"], "stand-in"), folder) == 12 - 6
    status = status_of(CELL, "stand-in", out=workshop.out, data=workshop.data)
    assert (status.word, status.note) == ("partly", "0 of 1 runs trained")
    before = effort_of(folder)["seconds"]
    assert before > 0
    result = run(CELL, workshop)
    assert result.rows == undisturbed.rows
    assert result.seconds > before


def spec_recording(every, **train):
    given = {"name": "some", "data": {"kind": "digits"}, "record": {"every": every}}
    return Spec.model_validate(given | {"train": {"networks": 2, **train}})


def test_a_last_epoch_that_every_other_one_leaves_over_is_a_row_too(tmp_path):
    spec = spec_recording(2, epochs=5)
    rows = [np.zeros(3, int)] * 2  # after epochs 2 and 4; that after 5 is missing
    for network in range(2):
        with accord.Recorder(tmp_path / "test", network=network, samples=3, classes=2) as recorder:
            for row in rows:
                recorder.record(row)
    assert moments_left(spec, tmp_path) == 2
    assert moments_left(spec, tmp_path / "nowhere") == 6


def test_an_epoch_has_no_more_rows_than_steps_once_its_samples_are_known(tmp_path):
    spec = spec_recording(0.01, epochs=3, batch=500)
    assert moments_left(spec, tmp_path) == 2 * 3 * 100
    material = prepare_data(spec)
    save_input_schema(tmp_path, find_input_schema(material))
    assert 500 < len(material.splits["train"]) < 1500
    steps = -(-len(material.splits["train"]) // 500)
    assert moments_left(spec, tmp_path) == 2 * 3 * steps


def test_a_result_is_enough_where_its_runs_are_gone(workshop, trainer):
    first = run(CELL, workshop)
    shutil.rmtree(workshop.out / "runs")
    assert run(CELL, workshop) == first
    assert len(trainer.trained) == 1


def test_the_scale_says_how_often_to_repeat(workshop, monkeypatch):
    monkeypatch.setitem(SCALES, "stand-in", replace(SCALES["stand-in"], repetitions=2))
    assert run(CELL, workshop).repetitions == 2


def test_what_is_trained_needs_no_gpu_any_more(workshop, trainer, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setitem(protocols()["scale"]["medium"], "train", SMALL)
    run(CELL, workshop)
    trained = workshop.out / "runs" / trainer.trained[0]
    (trained / "spec.toml").unlink()  # it would say what was really trained
    trained.rename(run_folder(workshop.out, build_spec(CELL.cells["noisy"], "medium")))
    assert reproduce(CELL, workshop, scale="medium").scale == "medium"
    assert len(trainer.trained) == 1


def test_repetitions_differ_and_are_summed_up(workshop, trainer):
    result = run(CELL, workshop, repetitions=2)
    assert len(set(trainer.trained)) == result.repetitions == 2
    row = result.rows["single"]
    assert row.values[0] != row.values[1]
    assert row.ours == pytest.approx(np.mean(row.values))
    assert row.standard_error == pytest.approx(np.std(row.values, ddof=1) / np.sqrt(2))
    assert run(CELL, workshop, repetitions=1) == result
    assert len(run(CELL, workshop, repetitions=3).rows["majority"].values) == 3
    assert len(trainer.trained) == 3


def test_a_packed_record_serves_as_well(workshop, trainer):
    first = run(CELL, workshop)
    folder = workshop.out / "runs" / trainer.trained[0]
    pack_record(folder / "test", folder / "test.zip")
    shutil.rmtree(folder / "test")
    (workshop.out / CELL.name / "stand-in.json").unlink()
    assert run(CELL, workshop).rows == first.rows
    assert len(trainer.trained) == 1


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("table3/hyper-ensemble/sym/20", {"original", "max-agreement"}),
        ("table3/batch-ensemble/sym/20", {"original", "max-agreement"}),
        ("table5/tinyimagenet/sym/40", {"elr", "elr-ensemble", "elr-max-agreement"}),
        ("table6/adversarial-network", {"single", "ensemble", "max-agreement"}),
        ("table2/cifar10/sym/40", {"rog", "consensus", "npc", "max-agreement"}),
    ],
)
def test_each_table_has_its_own_rows(name, rows, workshop):
    result = run(all_targets()[name], workshop)
    assert result.rows.keys() == rows
    assert all(row.paper is not None and 0 < row.ours <= 100 for row in result.rows.values())


def test_ensembles_are_measured_as_their_authors_do(workshop, trainer):
    for name, own in (("batch-ensemble", "probability-average"), ("hyper-ensemble", "majority")):
        result = run(all_targets()[f"table3/{name}/sym/20"], workshop)
        record = accord.open(workshop.out / "runs" / trainer.trained[-1] / "test")
        assert record.networks == 4
        assert result.rows["original"].ours == 100 * record.score([own])[0].accuracy


def test_the_single_network_of_an_ablation_is_the_best_one(workshop, trainer):
    result = run(all_targets()["table6/adversarial-network"], workshop)
    record = accord.open(workshop.out / "runs" / trainer.trained[0] / "test")
    each = record.score(["single"])[0].per_network
    assert result.rows["single"].ours == 100 * max(each)


def test_ensemble_sizes_are_tried_up_to_all_networks(workshop, trainer):
    rows = run(all_targets()["table4/cifar10/sym/40"], workshop).rows
    record = accord.open(workshop.out / "runs" / trainer.trained[0] / "test")
    sweep = record.by_networks("max-agreement")
    assert record.networks == 8
    assert rows["max-agreement-5"].ours == pytest.approx(100 * sweep.mean[4])
    assert rows["max-agreement-opt"].ours == pytest.approx(100 * max(sweep.mean))
    assert rows["max-agreement-networks"].ours == int(np.argmax(sweep.mean)) + 1
    assert rows["majority-opt"].paper == 84.2


@pytest.mark.parametrize(
    "name", ["figure2/cifar10/asym/20", "figure3/cifar10/sym/60", "figure8/cifar100"]
)
def test_figures_keep_their_numbers_and_are_drawn(name, workshop, trainer, monkeypatch):
    target = all_targets()[name]
    result = run(target, workshop)
    path = workshop.out / name / "stand-in"
    assert path.with_suffix(".svg").read_text("utf-8").startswith("<?xml")
    assert result.numbers["panels"][0]["name"] == f"digits stand in for {target.says}"
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(path.with_suffix(".json").read_text("utf-8"))["numbers"] == result.numbers
    monkeypatch.setitem(SCALES, "stand-in", replace(SCALES["stand-in"], repetitions=3))
    status = status_of(target, "stand-in", out=workshop.out, data=workshop.data)
    assert status.word == "done"  # one repetition is all that a figure shows
    path.with_suffix(".svg").unlink()
    run(target, workshop)
    assert path.with_suffix(".svg").exists()
    assert len(trainer.trained) == len(set(trainer.trained))


def test_few_samples_are_few_in_a_stand_in_too(workshop, trainer):
    run(all_targets()["figure8/cifar100"], workshop)
    assert [name.split("-per-class")[0].rpartition("-")[2] for name in trainer.trained] == [
        "10",
        "25",
        "50",
        "100",
    ]


@pytest.mark.parametrize("name", ["figure9"])
def test_what_trains_no_network_is_drawn(name, workshop, trainer):
    result = reproduce(all_targets()[name], workshop, scale="paper")
    assert result.numbers
    assert (workshop.out / name / "thought.svg").exists()
    assert trainer.trained == []
    assert (
        status_of(all_targets()[name], "quick", out=workshop.out, data=workshop.data).word == "done"
    )


def test_a_network_that_was_stopped_is_named(workshop):
    def fail(spec, out, progress):
        return RunResult(out, {1: "the loss became nan"})

    with pytest.raises(TrainingError, match=r"network 1 was stopped: the loss became nan"):
        run(CELL, replace(workshop, train=fail))


def test_missing_data_stop_before_training(workshop, trainer):
    cell = replace(CELL)
    with pytest.raises(SourceError, match="CIFAR-10 is not there"):
        reproduce(cell, replace(workshop, on_cpu=True), scale="paper")
    assert trainer.trained == []


def test_without_a_gpu_quick_is_a_stand_in_and_the_rest_is_refused(monkeypatch, workshop):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert settle_scale("quick", workshop) == settle_scale("stand-in", workshop) == "stand-in"
    assert settle_scale("quick", replace(workshop, on_cpu=True)) == "quick"
    assert settle_scale("quick", replace(workshop, has_gpu=lambda: True)) == "quick"
    for scale in ("paper", "medium"):
        with pytest.raises(ChoiceError, match=f"{scale} wants a GPU, and there is none"):
            reproduce(CELL, workshop, scale=scale)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert settle_scale("paper", workshop) == "paper"
    assert settle_scale("quick", workshop) == "quick"


def test_results_of_other_runs_under_the_same_name_are_refused(workshop):
    result = run(CELL, workshop)
    save_result(replace(result, runs={"noisy": ["digits-sym40-0123456789ab"]}), workshop.out)
    with pytest.raises(
        SpecError, match=r"stand-in\.json: holds a result of other runs, digits-sym40-01"
    ):
        run(CELL, workshop)
    status = status_of(CELL, "stand-in", out=workshop.out, data=workshop.data)
    assert status.word == "partly"
    assert "holds a result of other runs" in status.note


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not a result that can be read"),
        ('{"format": 2}', "form 2; this Accord reads form 1"),
        (KEPT % '"runs": {"noisy": null}, "repetitions": 1', "not a result that can be read"),
        (KEPT % '"runs": [], "repetitions": 1', "not a result that can be read"),
        (KEPT % '"runs": {}, "repetitions": "1"', "not a result that can be read"),
        (KEPT % '"runs": {}, "repetitions": 1', r"\(it is of t at the scale stand-in\)"),
    ],
)
def test_a_file_that_is_no_result_is_named(text, why, workshop):
    path = workshop.out / CELL.name / "stand-in.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    with pytest.raises(SourceError, match=rf"stand-in\.json: .*{why}"):
        run(CELL, workshop)


def test_a_result_that_cannot_be_opened_is_named(workshop):
    (workshop.out / CELL.name / "stand-in.json").mkdir(parents=True)
    with pytest.raises(SourceError, match=r"stand-in\.json: not a result that can be read"):
        run(CELL, workshop)
    assert status_of(CELL, "stand-in", out=workshop.out, data=workshop.data).word == "partly"


def test_a_result_has_a_value_for_each_repetition(workshop):
    run(CELL, workshop)
    edit(workshop.out / CELL.name / "stand-in.json", '"repetitions": 1', '"repetitions": 3')
    with pytest.raises(SourceError, match="single has 1 value for 3 repetitions"):
        run(CELL, workshop)


def test_the_papers_error_is_shown_as_published():
    target = all_targets()["table2/cifar10/sym/20"]
    rows = {"max-agreement": row_of([92.0], target.published["max-agreement"])}
    told = result_text(Result(target.name, target.says, "quick", 1, rows=rows))
    assert "| 93.2 ± 0.07 |" in told


def test_a_run_of_another_spec_is_not_measured(workshop, trainer):
    run(CELL, workshop)
    path = workshop.out / "runs" / trainer.trained[0] / "spec.toml"
    edit(path, "rate = 0.4", "rate = 0.2")
    with pytest.raises(SourceError, match=r"spec\.toml: is the spec of digits-sym40-.* not what"):
        run(CELL, workshop)


def test_status_goes_from_missing_data_to_done(workshop):
    def status(scale):
        return status_of(CELL, scale, out=workshop.out, data=workshop.data)

    missing = status("quick")
    assert missing.word == "data missing"
    place = workshop.data / "cifar-10-batches-bin"
    assert missing.note.startswith(f"put CIFAR-10 at {place}; it comes from https://www.cs.tor")
    place.mkdir(parents=True)
    partly = status("quick")  # an empty folder is not enough
    assert partly.word == "data missing"
    part = f"put this part of CIFAR-10 at {place / 'data_batch_1.bin'}; it comes from https://www"
    assert partly.note.startswith(part)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (place / f"{name}.bin").touch()
    assert status("quick").word == status("stand-in").word == "not run"
    run(CELL, workshop)
    assert status("stand-in").word == "done"
    assert status("quick").word == "not run"
    (workshop.out / CELL.name / "stand-in.json").unlink()
    assert (status("stand-in").word, status("stand-in").note) == (
        "partly",
        "trained, and not measured yet",
    )
    transfer = all_targets()["table6/transfer-learning"]
    assert status_of(transfer, "stand-in", out=workshop.out, data=workshop.data).word == "none"


def test_too_few_repetitions_are_part_of_the_work(workshop, monkeypatch):
    run(CELL, workshop)
    monkeypatch.setitem(SCALES, "stand-in", replace(SCALES["stand-in"], repetitions=3))
    status = status_of(CELL, "stand-in", out=workshop.out, data=workshop.data)
    assert (status.word, status.note) == ("partly", "1 of 3 repetitions")


def test_results_come_back_as_they_were_kept(workshop):
    result = run(CELL, workshop)
    assert load_result(workshop.out, CELL.name, "stand-in") == result
    assert load_results(workshop.out, all_targets().values(), SCALES_KEPT) == [result]
    write_summary([result], workshop.out)
    summary = (workshop.out / "results.md").read_text("utf-8")
    assert "| table1/cifar10/sym/40 | stand-in | 1 | max-agreement | 90.0 ± 0.1 |" in summary
    assert "dawid-skene" not in summary
    assert "\nAt the scale stand-in, digits stand in for the paper's data: compare" in summary
    write_summary([replace(result, scale="quick")], workshop.out)
    assert "digits" not in (workshop.out / "results.md").read_text("utf-8")


def test_a_stand_in_is_not_measured_against_the_paper(workshop):
    result = run(CELL, workshop)
    assert "digits stand in for the paper's data" in result_text(result)
    assert "difference" not in result.as_json()["rows"]["majority"]
    real = replace(result, scale="medium", rows={"majority": row_of([76.88], [78.5, 0.7])})
    assert real.as_json()["rows"]["majority"]["difference"] == pytest.approx(-1.62)
    text = result_text(real)
    assert "| majority | 78.5 ± 0.7 | 76.88 |       -1.6 |" in text
    assert "stand in" not in text


def test_a_row_of_one_has_no_error():
    assert row_of([80.0]) == Row(80.0, None, (80.0,))
    assert row_of([None, 80.0]) == Row(80.0, None, (None, 80.0))
    assert row_of([80.0], [81.0]).difference == -1.0


def test_a_run_is_named_by_what_its_labels_follow_from():
    spec = build_spec(Cell("cifar10", "sym", 40), "medium")
    quiet = spec.model_copy(
        update={"record": spec.record.model_copy(update={"probabilities": False})}
    )
    assert run_name(spec) == run_name(quiet) == "cifar10-sym40-dc4d24986919"
    assert run_name(build_spec(Cell("cifar10", "sym", 40), "medium", seed=1)) != run_name(spec)


def test_ray_trains_in_the_place_of_this_process(monkeypatch, tmp_path):
    asked = {}

    def train(spec, out, **more):
        asked.update(more)
        return train_here(spec, out, None)

    monkeypatch.setattr("accord.experiments.cluster.train_remotely", train)
    spec = build_spec(CELL.cells["noisy"], "stand-in")
    assert not train_with_ray("10.0.0.1:6379", gpus=0.5)(spec, tmp_path / "run", None).failed
    assert (asked["address"], asked["gpus"]) == ("10.0.0.1:6379", 0.5)
    assert 'kind = "digits"' in asked["source"]


TABLE2 = all_targets()["table2/cifar10/sym/40"]


def fail_npc(monkeypatch, *, at):
    """Let NPC fail at one network, counted over all repetitions."""
    tried = []

    def predict(*_, **__):
        tried.append(1)
        if len(tried) == at:
            raise PredictionError("the network predicts class 3 for all samples")
        return np.eye(10)[np.zeros(719, int)]

    monkeypatch.setattr("accord.baselines.npc.predict_npc", predict)


def test_a_rival_that_failed_is_named_with_the_reason(workshop, monkeypatch):
    fail_npc(monkeypatch, at=1)
    result = run(TABLE2, workshop)
    assert result.rows.keys() == {"rog", "consensus", "max-agreement"}
    assert result.failed == {"npc": "the network predicts class 3 for all samples"}
    text = (workshop.out / TABLE2.name / "stand-in.md").read_text("utf-8")
    assert text.endswith("|\n\nnot measured: npc: the network predicts class 3 for all samples\n")
    assert load_result(workshop.out, TABLE2.name, "stand-in") == result


def test_a_rival_that_failed_in_one_repetition_is_named_with_it(workshop, monkeypatch):
    fail_npc(monkeypatch, at=4)  # the first of the second repetition's three networks
    result = run(TABLE2, workshop, repetitions=3)
    assert result.rows.keys() == {"rog", "consensus", "max-agreement"}
    assert result.failed["npc"].startswith("repetition 1: the network predicts class 3")


def test_table_2_is_measured_once_and_needs_its_data_for_that(workshop, monkeypatch):
    first = run(TABLE2, workshop)

    def missing(*_):
        raise SourceError("the data are not there")

    monkeypatch.setattr("accord.experiments.paper._reproduce.check_data", missing)
    assert run(TABLE2, workshop) == first
    (workshop.out / TABLE2.name / "stand-in.json").unlink()
    with pytest.raises(SourceError, match="the data are not there"):
        run(TABLE2, workshop)


def test_table_2_asks_for_runs_of_its_own(workshop, monkeypatch):
    """Table 1's record of the same cell is not what its methods need."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setitem(protocols()["scale"]["medium"], "train", SMALL)
    table1 = run(CELL, workshop)
    (name,) = table1.runs["noisy"]
    medium = run_folder(workshop.out, build_spec(CELL.cells["noisy"], "medium"))
    (workshop.out / "runs" / name).rename(medium)
    with pytest.raises(ChoiceError, match="medium wants a GPU, and there is none"):
        reproduce(TABLE2, workshop, scale="medium")
    assert status_of(TABLE2, "medium", out=workshop.out, data=workshop.data).word == "data missing"
    assert status_of(CELL, "medium", out=workshop.out, data=workshop.data).word == "partly"


def test_table_2_has_an_effort_and_a_status_of_its_own(workshop):
    table1 = run(CELL, workshop)

    def stop(*_):
        raise KeyboardInterrupt

    def status():
        return status_of(TABLE2, "stand-in", out=workshop.out, data=workshop.data).word

    assert status() == "not run"
    with pytest.raises(KeyboardInterrupt):
        run(TABLE2, replace(workshop, progress=stop))
    assert status() == "partly"
    (folder,) = (workshop.out / "runs" / table1.runs["noisy"][0]).glob("shared-*")
    before = effort_of(folder)["seconds"]
    result = run(TABLE2, replace(workshop, machine="a Ray cluster at 10.0.0.1:6379"))
    assert status() == "done"
    assert result.seconds == effort_of(folder)["seconds"] > before > 0
    assert result.seconds != table1.seconds
    assert result.machine.endswith(", then a Ray cluster at 10.0.0.1:6379")


def test_table_2_is_trained_as_the_rest_is(workshop, trainer):
    run(TABLE2, workshop)
    (name,) = trainer.trained
    assert name.startswith("shared-")


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_what_was_kept_is_measured_again_where_the_records_are(workshop, trainer):
    said = []
    first = run(CELL, workshop)
    path = workshop.out / CELL.name / "stand-in.json"
    edit(path, f'"ours": {first.rows["majority"].ours}', '"ours": 99.9')
    edit(path, f'"version": "{accord.__version__}"', '"version": "0.0.1"')
    assert run(CELL, replace(workshop, say=said.append)) == first
    assert load_result(workshop.out, CELL.name, "stand-in") == first
    (text,) = said
    assert "stand-in.json: what Accord 0.0.1 kept there is not what the records say" in text
    assert len(trainer.trained) == 1


def test_what_is_confirmed_is_left_as_it_was(workshop):
    said = []
    run(CELL, workshop)
    path = workshop.out / CELL.name / "stand-in.json"
    edit(path, f'"version": "{accord.__version__}"', '"version": "0.0.1"')
    before = path.stat()
    again = run(CELL, replace(workshop, say=said.append))
    assert (again.version, said) == ("0.0.1", [])
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def pack_labels(run_folder):
    pack_record(run_folder / "test", run_folder / "test.zip", labels_only=True)
    shutil.rmtree(run_folder / "test")


def test_what_took_probabilities_outlives_them(workshop, trainer):
    first = run(CELL, workshop)
    assert {"probability-average", "soft-agreement"} < first.rows.keys()
    pack_labels(workshop.out / "runs" / trainer.trained[0])
    assert run(CELL, workshop) == first
    path = workshop.out / CELL.name / "stand-in.json"
    edit(path, f'"ours": {first.rows["majority"].ours}', '"ours": 99.9')
    again = run(CELL, workshop)
    assert again.rows["majority"] == first.rows["majority"]
    assert again.rows["probability-average"] == first.rows["probability-average"]


def test_repetitions_of_which_one_has_no_probabilities(workshop, trainer):
    first = run(CELL, workshop)
    pack_labels(workshop.out / "runs" / trainer.trained[0])
    path = workshop.out / CELL.name / "stand-in.json"
    both = run(CELL, workshop, repetitions=2).rows["soft-agreement"]
    assert both.values[0] == first.rows["soft-agreement"].ours
    assert len(both.values) == 2
    path.unlink()
    again = run(CELL, workshop, repetitions=2)
    assert again.rows["soft-agreement"].values == (None, both.values[1])
    assert again.rows["soft-agreement"].ours == both.values[1]
    assert again.rows["soft-agreement"].standard_error is None
    assert len(again.rows["majority"].values) == 2
    why = "repetition 0: the record holds no probabilities"
    assert again.failed == {"probability-average": why, "soft-agreement": why}
    assert f"not measured: probability-average: {why}" in result_text(again)
    assert json.loads(path.read_text())["rows"]["soft-agreement"]["values"][0] is None
    assert run(CELL, workshop, repetitions=2) == again
    write_summary([again], workshop.out)
    assert "not measured" not in (workshop.out / "results.md").read_text()


def test_a_row_of_the_paper_that_needs_probabilities_is_missed_aloud(workshop, trainer):
    run(CELL, workshop)
    pack_labels(workshop.out / "runs" / trainer.trained[0])
    (workshop.out / CELL.name / "stand-in.json").unlink()
    result = run(CELL, workshop)
    assert result.failed == {"probability-average": "the record holds no probabilities"}
    assert "not measured: probability-average: the record" in result_text(result)
    assert run(CELL, workshop) == result


def test_more_repetitions_than_asked_for_are_measured_again_too(workshop):
    first = run(CELL, workshop, repetitions=2)
    path = workshop.out / CELL.name / "stand-in.json"
    edit(path, f'"ours": {first.rows["majority"].ours}', '"ours": 99.9')
    assert run(CELL, workshop, repetitions=1) == first


def test_effort_that_was_kept_outlives_its_file(workshop, trainer):
    first = run(CELL, workshop)
    (workshop.out / "runs" / trainer.trained[0] / "effort.json").unlink()
    edit(workshop.out / CELL.name / "stand-in.json", f"{first.rows['majority'].ours}", "99.9")
    assert run(CELL, workshop) == first


def test_a_result_is_enough_without_a_gpu(workshop, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setitem(protocols()["scale"]["medium"], "train", SMALL)
    result = replace(run(CELL, workshop), scale="medium")
    names = {"noisy": [run_name(build_spec(CELL.cells["noisy"], "medium"))]}
    save_result(replace(result, runs=names), workshop.out)
    assert reproduce(CELL, workshop, scale="medium").rows == result.rows
    with pytest.raises(ChoiceError, match="wants a GPU"):
        reproduce(CELL, workshop, scale="medium", repetitions=2)


def test_a_figure_is_drawn_from_its_numbers_where_its_runs_are_gone(workshop, trainer):
    target = all_targets()["figure2/cifar10/asym/20"]
    run(target, workshop)
    shutil.rmtree(workshop.out / "runs")
    (workshop.out / target.name / "stand-in.svg").unlink()
    run(target, workshop)
    assert (workshop.out / target.name / "stand-in.svg").exists()
    assert len(trainer.trained) == 1


def test_a_figure_whose_numbers_are_damaged_is_named(workshop):
    target = all_targets()["figure2/cifar10/asym/20"]
    run(target, workshop)
    shutil.rmtree(workshop.out / "runs")
    (workshop.out / target.name / "stand-in.svg").unlink()
    edit(workshop.out / target.name / "stand-in.json", '"panels"', '"panes"')
    with pytest.raises(SourceError, match=r"stand-in\.json: its numbers cannot be drawn"):
        run(target, workshop)


def test_a_figure_that_differs_is_drawn_again(workshop):
    target = all_targets()["figure2/cifar10/asym/20"]
    first = run(target, workshop)
    path = workshop.out / target.name / "stand-in"
    (count, *_) = first.numbers["panels"][0]["wrong_predictions"]
    edit(path.with_suffix(".json"), f"    {count},", f"    {count + 1},")
    path.with_suffix(".svg").write_text("old", "utf-8")
    assert run(target, workshop).numbers == first.numbers
    assert path.with_suffix(".svg").read_text("utf-8") != "old"
    path.with_suffix(".svg").write_text("old", "utf-8")
    run(target, workshop)
    assert path.with_suffix(".svg").read_text("utf-8") == "old"  # nothing has changed


def test_figure_1_keeps_its_picture_where_the_data_are_not_at_hand(workshop):
    target = all_targets()["figure1"]
    first = run(target, workshop)
    (panel,) = first.numbers["panels"]
    assert panel["picture"] is not None
    kept = replace(
        first, numbers={**first.numbers, "panels": [{**panel, "picture": [[[1, 2, 3]]]}]}
    )
    save_result(kept, workshop.out)

    def no_data(*_):
        return "digits"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.experiments.paper._measure.missing_data", no_data)
        assert run(target, workshop).numbers["panels"][0]["picture"] == [[[1, 2, 3]]]
        other = {**panel, "sample": panel["sample"] + 1}  # of which the picture tells nothing
        save_result(replace(first, numbers={**first.numbers, "panels": [other]}), workshop.out)
        assert run(target, workshop).numbers["panels"][0]["picture"] is None
    assert run(target, workshop).numbers == first.numbers


def test_a_figure_says_that_it_shows_one_run(workshop):
    target = all_targets()["figure2/cifar10/asym/20"]
    result = run(target, workshop, repetitions=3)
    assert result.repetitions == 1
    assert "scale stand-in, 1 repetition (a figure shows one run)," in result_text(result)
    assert "one run" not in result_text(run(CELL, workshop))


def test_what_trains_no_network_is_thought_once_and_tells_what_it_found(workshop, monkeypatch):
    target = all_targets()["figure9"]
    first = reproduce(target, workshop)
    path = workshop.out / "figure9/thought.md"
    told = path.read_text("utf-8")
    assert "wrong in % of the plane: the networks 2.3, 5.2, 2.0; their majority 1.8" in told
    assert first.version == accord.__version__

    def again():
        raise AssertionError("thought twice")

    monkeypatch.setattr("accord.experiments.paper._analytic.THOUGHTS", {"toy": again})
    path.write_text("what an earlier Accord said", "utf-8")
    assert reproduce(target, workshop) == first
    assert path.read_text("utf-8") == told
    (workshop.out / "figure9/thought.png").unlink()
    with pytest.raises(AssertionError, match="thought twice"):
        reproduce(target, workshop)


def test_a_picture_that_is_missing_changes_no_numbers(workshop):
    target = all_targets()["figure9"]
    reproduce(target, workshop)
    edit(workshop.out / "figure9/thought.json", '"epochs": 18', '"epochs": 19')
    (workshop.out / "figure9/thought.png").unlink()
    assert reproduce(target, workshop).numbers["epochs"] == 19
    assert (workshop.out / "figure9/thought.png").exists()


@pytest.mark.parametrize("text", ["", '{"format": 1, "rows": {}}'])
def test_a_damaged_result_is_part_of_the_work(text, workshop):
    path = workshop.out / "theory/thought.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    status = status_of(all_targets()["theory"], "quick", out=workshop.out, data=workshop.data)
    assert status.word == "partly"
    assert "thought.json: not a result that can be read" in status.note


def test_a_thought_without_its_numbers_is_no_result(workshop):
    target = all_targets()["figure9"]
    reproduce(target, workshop)
    edit(workshop.out / "figure9/thought.json", '"majority"', '"mayority"')
    with pytest.raises(SourceError, match=r"thought\.json: not a result that can be read"):
        reproduce(target, workshop)


def test_numbers_of_networks_are_not_accuracies(workshop):
    result = run(all_targets()["table4/cifar10/sym/40"], workshop)
    ours = int(result.rows["max-agreement-networks"].ours)
    assert f"{ours} networks |" in result_text(result)
    mean = replace(result, rows={"majority-networks": row_of([7.0, 8.0, 8.0])})
    assert "7.67 networks |" in result_text(mean)


def test_what_cannot_begin_leaves_nothing(workshop):
    def refuse(spec, out, progress):
        raise ClusterError("10.0.0.1:6379: no cluster answers there")

    with pytest.raises(ClusterError):
        run(CELL, replace(workshop, train=refuse))
    assert not workshop.out.exists()


def test_a_second_process_does_not_touch_the_first_ones_effort(workshop):
    run(CELL, workshop)
    folder = run_folder(workshop.out, build_spec(CELL.cells["noisy"], "stand-in"))
    before = effort_of(folder)
    (workshop.out / CELL.name / "stand-in.json").unlink()
    shutil.rmtree(folder / "test")

    def refuse(spec, out, progress):
        raise RecordBusy("another recorder holds this network")

    with pytest.raises(RecordBusy, match=r"another process is training this run\. Start again"):
        run(CELL, replace(workshop, train=refuse))
    assert effort_of(folder) == before


def test_a_cluster_is_named_in_the_place_of_this_machine(workshop):
    result = run(CELL, replace(workshop, machine="a Ray cluster at 10.0.0.1:6379"))
    assert result.machine == "a Ray cluster at 10.0.0.1:6379"


def test_a_damaged_effort_stops_before_training(workshop, trainer):
    folder = run_folder(workshop.out, build_spec(CELL.cells["noisy"], "stand-in"))
    folder.mkdir(parents=True)
    (folder / "effort.json").touch()
    with pytest.raises(SourceError, match=r"effort\.json: does not say who trained"):
        run(CELL, workshop)
    assert trainer.trained == []
