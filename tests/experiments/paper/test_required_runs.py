"""The runs of targets: their folders, training and cost."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from paper_targets import CELL, TABLE2, edit, run

import accord
from accord.errors import (
    ChoiceError,
    ClusterError,
    RecordBusy,
    SourceError,
    SpecError,
    TrainingError,
)
from accord.experiments.paper import (
    Cell,
    ReproduceContext,
    all_targets,
    build_spec,
    reproduce,
    status_of,
)
from accord.experiments.paper._required_runs import (
    COST_FILE,
    CostLog,
    cost_of,
    machine_name,
    run_folder,
    run_name,
    settle_scale,
)
from accord.experiments.paper._results import save_result
from accord.training import Progress, Run, RunResult, Spec, load_spec, train
from accord.training._input_schema_file import measure_input_schema, save_input_schema
from accord.training._prepared_data import prepare_data

EPOCH = Progress(0, 1.0, 4, 0.5, networks=5)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def stop_at_once(spec, out, progress):
    def stop(*_):
        raise KeyboardInterrupt

    return train(spec, out, progress=stop)


def test_no_cost_is_written_before_the_first_epoch(tmp_path):
    CostLog(tmp_path / "run", "a machine")
    assert not (tmp_path / "run").exists()
    assert cost_of(tmp_path / "run") is None


def test_cost_is_written_after_each_epoch(tmp_path, clock):
    text = []
    log = CostLog(tmp_path, "a machine", text.append)
    clock[0] += 2
    log(EPOCH)
    assert cost_of(tmp_path) == {"machine": "a machine", "seconds": 2.0}
    clock[0] += 3
    log(EPOCH)
    assert cost_of(tmp_path) == {"machine": "a machine", "seconds": 5.0}
    assert text == [EPOCH, EPOCH]


def test_cost_adds_up_over_trainings(tmp_path, clock):
    for machine, seconds in (("one GPU", 2), ("2 cores", 3), ("one GPU", 4)):
        log = CostLog(tmp_path, machine)
        clock[0] += seconds
        log(EPOCH)
    assert cost_of(tmp_path) == {"machine": "one GPU, then 2 cores", "seconds": 9.0}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"machine": "m", "seconds": "long"}', "\xff"])
def test_damaged_cost_raises(text, tmp_path):
    (tmp_path / COST_FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(SourceError, match=r"effort\.json: does not hold the machine.*Remove it"):
        cost_of(tmp_path)


def test_cost_is_json(tmp_path):
    CostLog(tmp_path, "m")(EPOCH)
    assert json.loads((tmp_path / COST_FILE).read_text("utf-8")).keys() == {"machine", "seconds"}


@pytest.mark.parametrize(("threads", "words"), [(1, "1 core, "), (2, "2 cores, ")])
def test_machine_name_counts_cores(threads, words, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    assert machine_name().startswith(words)


def test_machine_name_of_a_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "NVIDIA H200")
    assert machine_name() == "one NVIDIA H200"


def test_machines_with_overlapping_names_are_both_listed(tmp_path, clock):
    for machine in ("12 cores, x86_64", "2 cores, x86_64"):
        CostLog(tmp_path, machine)(EPOCH)
    assert cost_of(tmp_path)["machine"] == "12 cores, x86_64, then 2 cores, x86_64"


def test_figure_8_uses_few_samples_at_the_stand_in_scale_too(context, trainer):
    run(all_targets()["figure8/cifar100"], context)
    assert [name.split("-per-class")[0].rpartition("-")[2] for name in trainer.trained] == [
        "10",
        "25",
        "50",
        "100",
    ]


def test_error_names_a_stopped_network(context):
    def fail(spec, out, progress):
        return RunResult(out, {1: "the loss became nan"})

    with pytest.raises(TrainingError, match=r"network 1 was stopped: the loss became nan"):
        run(CELL, replace(context, train=fail))


def test_quick_becomes_stand_in_without_a_gpu(monkeypatch, context):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert settle_scale("quick", context) == settle_scale("stand-in", context) == "stand-in"
    assert settle_scale("quick", replace(context, on_cpu=True)) == "quick"
    assert settle_scale("quick", replace(context, has_gpu=lambda: True)) == "quick"
    for scale in ("paper", "medium"):
        with pytest.raises(ChoiceError, match=f"{scale} requires a GPU, and none was found"):
            reproduce(CELL, context, scale=scale)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert settle_scale("paper", context) == "paper"
    assert settle_scale("quick", context) == "quick"


def test_result_of_other_runs_is_refused(context):
    result = run(CELL, context)
    save_result(replace(result, runs={"noisy": ["digits-sym40-0123456789ab"]}), context.out)
    with pytest.raises(
        SpecError, match=r"stand-in\.json: holds a result of other runs, digits-sym40-01"
    ):
        run(CELL, context)
    status = status_of(CELL, "stand-in", out=context.out, data=context.data)
    assert status.word == "partly"
    assert "holds a result of other runs" in status.note


def test_run_with_another_spec_is_refused(context, trainer):
    run(CELL, context)
    path = context.out / "runs" / trainer.trained[0] / "spec.toml"
    edit(path, "rate = 0.4", "rate = 0.2")
    with pytest.raises(SourceError, match=r"spec\.toml: is the spec of digits-sym40-.*, not of"):
        run(CELL, context)


def test_run_name_depends_on_everything_that_labels_depend_on():
    spec = build_spec(Cell("cifar10", "sym", 40), "medium")
    quiet = spec.model_copy(
        update={"record": spec.record.model_copy(update={"probabilities": False})}
    )
    assert run_name(spec) == run_name(quiet) == "cifar10-sym40-dc4d24986919"
    assert run_name(build_spec(Cell("cifar10", "sym", 40), "medium", seed=1)) != run_name(spec)


def test_training_that_cannot_start_leaves_no_files(context):
    def refuse(spec, out, progress):
        raise ClusterError("10.0.0.1:6379: no cluster answers there")

    with pytest.raises(ClusterError):
        run(CELL, replace(context, train=refuse))
    assert not context.out.exists()


def test_busy_run_keeps_its_cost(context):
    run(CELL, context)
    folder = run_folder(context.out, build_spec(CELL.cells["noisy"], "stand-in"))
    before = cost_of(folder)
    (context.out / CELL.name / "stand-in.json").unlink()
    shutil.rmtree(folder / "test")

    def refuse(spec, out, progress):
        raise RecordBusy("another recorder holds this network")

    with pytest.raises(RecordBusy, match=r"another process is training this run\. Start again"):
        run(CELL, replace(context, train=refuse))
    assert cost_of(folder) == before


def test_damaged_cost_raises_before_training(context, trainer):
    folder = run_folder(context.out, build_spec(CELL.cells["noisy"], "stand-in"))
    folder.mkdir(parents=True)
    (folder / "effort.json").touch()
    with pytest.raises(SourceError, match=r"effort\.json: does not hold the machine and seconds"):
        run(CELL, context)
    assert trainer.trained == []


@pytest.mark.parametrize("spelling", [1, 2], ids=["link", "relative"])
@pytest.mark.parametrize("target", [CELL, TABLE2], ids=["table1", "table2"])
def test_run_resumes_with_another_spelling_of_the_data_folder(
    target, spelling, spellings, trainer, tmp_path
):
    context = ReproduceContext(tmp_path / "out", spellings[0], stop_at_once, on_cpu=True)
    with pytest.raises(KeyboardInterrupt):
        reproduce(target, context)
    (begun,) = tmp_path.glob("out/**/spec.toml")
    reproduce(target, replace(context, data=spellings[spelling], train=trainer))
    assert trainer.trained == [begun.parent.name]
    assert list(tmp_path.glob("out/**/spec.toml")) == [begun]


def test_run_with_other_data_is_refused_without_naming_the_root(spellings, tmp_path):
    reproduce(CELL, ReproduceContext(tmp_path / "out", spellings[0], on_cpu=True))
    (path,) = tmp_path.glob("out/**/spec.toml")
    spec = load_spec(path)
    data = spec.data.model_copy(update={"path": "other"})
    other = spec.model_copy(update={"root": "elsewhere", "data": data})
    with pytest.raises(SpecError, match='"path": "other"') as caught:
        train(other, path.parent)
    assert "elsewhere" not in str(caught.value)


def spec_recording(every, **train):
    given = {"name": "some", "data": {"kind": "digits"}, "record": {"every": every}}
    return Spec.model_validate(given | {"train": {"networks": 2, **train}})


def test_missing_epochs_include_a_last_epoch_off_the_interval(tmp_path):
    spec = spec_recording(2, epochs=5)
    rows = [np.zeros(3, int)] * 2  # after epochs 2 and 4; that after 5 is missing
    for network in range(2):
        with accord.Recorder(tmp_path / "test", network=network, samples=3, classes=2) as recorder:
            for row in rows:
                recorder.record(row)
    assert Run(tmp_path, spec).missing_epochs == 2
    assert Run(tmp_path / "nowhere", spec).missing_epochs == 6


def test_missing_epochs_are_limited_by_the_steps_once_the_samples_are_known(tmp_path):
    spec = spec_recording(0.01, epochs=3, batch=500)
    assert Run(tmp_path, spec).missing_epochs == 2 * 3 * 100
    data = prepare_data(spec)
    save_input_schema(tmp_path, measure_input_schema(data))
    assert 500 < len(data.splits["train"]) < 1500
    steps = -(-len(data.splits["train"]) // 500)
    assert Run(tmp_path, spec).missing_epochs == 2 * 3 * steps
