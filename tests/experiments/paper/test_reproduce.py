"""Targets are trained once, measured, and stored beside the numbers of the paper."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from frames import deepest_chain
from paper_targets import CELL, TABLE2, edit, pack_labels, run

import accord
from accord.cli.app import run as run_command
from accord.errors import (
    ChoiceError,
    PredictionError,
    SourceError,
    TrainingError,
)
from accord.experiments.paper import (
    SCALES,
    Failure,
    all_targets,
    build_spec,
    find_targets,
    reproduce,
    reproduce_all,
    result_text,
    status_of,
    write_summary,
)
from accord.experiments.paper import _reproduce as reproduce_module
from accord.experiments.paper._protocols import protocols
from accord.experiments.paper._required_runs import (
    cost_of,
    run_folder,
    run_name,
)
from accord.experiments.paper._results import load_result, save_result
from accord.store._packed import pack_record
from accord.training import Run, RunResult

SMALL = protocols()["scale"]["stand-in"]["train"] | {
    "networks": 3,
    "network": "mlp",
    "options": {},
    "epochs": 4,
}
GROUP = [
    f"table6/{one}" for one in ("adversarial-network", "transfer-learning", "different-optimizer")
]


def fail_npc(monkeypatch, *, at):
    """Let NPC fail at one network, counted over all repetitions."""
    tried = []

    def predict(*_, **__):
        tried.append(1)
        if len(tried) == at:
            raise PredictionError("the network predicts class 3 for all samples")
        return np.eye(10)[np.zeros(719, int)]

    monkeypatch.setattr("accord.baselines.npc.predict_npc", predict)


def test_rows_are_the_scores_of_the_record_beside_the_papers(context, trainer):
    result = run(CELL, context)
    (name,) = trainer.trained
    record = accord.open(context.out / "runs" / name / "test")
    for score in record.score():
        assert result.rows[score.rule].ours == 100 * score.accuracy
    assert result.rows["max-agreement"].paper == 90.0
    assert result.rows["probability-average"].paper_error is None
    assert result.rows["dawid-skene"].paper is None
    assert result.runs == {"noisy": [name]}
    assert result.seconds > 0
    assert "core, " in result.machine  # tests have one
    assert result.version == accord.__version__


def test_nothing_is_trained_twice(context, trainer):
    first = run(CELL, context)
    assert run(CELL, context) == first
    (context.out / CELL.name / "stand-in.json").unlink()
    assert run(CELL, context).rows == first.rows
    assert len(trainer.trained) == 1


def test_targets_share_runs(context, trainer):
    run(all_targets()["figure5/cifar10/sym/40"], context)
    run(CELL, context)
    assert len(trainer.trained) == 2  # the noisy run, and the clean subset's
    assert len(set(trainer.trained)) == 2


def test_interrupted_target_resumes(context):
    def stop_after(epochs):
        def count(*_):
            nonlocal epochs
            epochs -= 1
            if epochs == 0:
                raise KeyboardInterrupt

        return count

    undisturbed = run(CELL, replace(context, out=context.out / "undisturbed"))
    with pytest.raises(KeyboardInterrupt):
        run(CELL, replace(context, progress=stop_after(6)))
    folder = run_folder(context.out, build_spec(CELL.cells["noisy"], "stand-in"))
    assert Run(folder, build_spec(CELL.cells["noisy"], "stand-in")).missing_epochs == 12 - 6
    status = status_of(CELL, "stand-in", out=context.out, data=context.data)
    assert (status.word, status.note) == ("partly", "0 of 1 runs trained")
    before = cost_of(folder)["seconds"]
    assert before > 0
    result = run(CELL, context)
    assert result.rows == undisturbed.rows
    assert result.seconds > before


def test_stored_result_suffices_without_its_runs(context, trainer):
    first = run(CELL, context)
    shutil.rmtree(context.out / "runs")
    assert run(CELL, context) == first
    assert len(trainer.trained) == 1


def test_scale_sets_the_repetitions(context, monkeypatch):
    monkeypatch.setitem(SCALES, "stand-in", replace(SCALES["stand-in"], repetitions=2))
    assert run(CELL, context).repetitions == 2


def test_finished_runs_require_no_gpu(context, trainer, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setitem(protocols()["scale"]["medium"], "train", SMALL)
    run(CELL, context)
    trained = context.out / "runs" / trainer.trained[0]
    (trained / "spec.toml").unlink()  # it names the scale stand-in
    trained.rename(run_folder(context.out, build_spec(CELL.cells["noisy"], "medium")))
    assert reproduce(CELL, context, scale="medium").scale == "medium"
    assert len(trainer.trained) == 1


def test_repetitions_differ_and_are_averaged(context, trainer):
    result = run(CELL, context, repetitions=2)
    assert len(set(trainer.trained)) == result.repetitions == 2
    row = result.rows["single"]
    assert row.values[0] != row.values[1]
    assert row.ours == pytest.approx(np.mean(row.values))
    assert row.standard_error == pytest.approx(np.std(row.values, ddof=1) / np.sqrt(2))
    assert run(CELL, context, repetitions=1) == result
    assert len(run(CELL, context, repetitions=3).rows["majority"].values) == 3
    assert len(trainer.trained) == 3


def test_packed_record_gives_the_same_result(context, trainer):
    first = run(CELL, context)
    folder = context.out / "runs" / trainer.trained[0]
    pack_record(folder / "test", folder / "test.zip")
    shutil.rmtree(folder / "test")
    (context.out / CELL.name / "stand-in.json").unlink()
    assert run(CELL, context).rows == first.rows
    assert len(trainer.trained) == 1


def test_missing_data_raise_before_training(context, trainer):
    cell = replace(CELL)
    with pytest.raises(SourceError, match="CIFAR-10 is missing"):
        reproduce(cell, replace(context, on_cpu=True), scale="paper")
    assert trainer.trained == []


def test_failed_method_is_listed_with_the_reason(context, monkeypatch):
    fail_npc(monkeypatch, at=1)
    result = run(TABLE2, context)
    assert result.rows.keys() == {"rog", "consensus", "max-agreement"}
    assert result.failed == {"npc": "the network predicts class 3 for all samples"}
    text = (context.out / TABLE2.name / "stand-in.md").read_text("utf-8")
    assert text.endswith("|\n\nnot measured: npc: the network predicts class 3 for all samples\n")
    assert load_result(context.out, TABLE2.name, "stand-in") == result


def test_method_that_failed_in_one_repetition_names_it(context, monkeypatch):
    fail_npc(monkeypatch, at=4)  # the first of the second repetition's three networks
    result = run(TABLE2, context, repetitions=3)
    assert result.rows.keys() == {"rog", "consensus", "max-agreement"}
    assert result.failed["npc"].startswith("repetition 1: the network predicts class 3")


def test_table_2_is_measured_once_and_needs_its_data(context, monkeypatch):
    first = run(TABLE2, context)

    def missing(*_):
        raise SourceError("the data are not there")

    monkeypatch.setattr("accord.experiments.paper._reproduce.check_data", missing)
    assert run(TABLE2, context) == first
    (context.out / TABLE2.name / "stand-in.json").unlink()
    with pytest.raises(SourceError, match="the data are not there"):
        run(TABLE2, context)


def test_table_2_needs_its_own_runs(context, monkeypatch):
    """Table 1's record of the same cell is not what its methods need."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setitem(protocols()["scale"]["medium"], "train", SMALL)
    table1 = run(CELL, context)
    (name,) = table1.runs["noisy"]
    medium = run_folder(context.out, build_spec(CELL.cells["noisy"], "medium"))
    (context.out / "runs" / name).rename(medium)
    with pytest.raises(ChoiceError, match="medium requires a GPU, and none was found"):
        reproduce(TABLE2, context, scale="medium")
    assert status_of(TABLE2, "medium", out=context.out, data=context.data).word == "data missing"
    assert status_of(CELL, "medium", out=context.out, data=context.data).word == "partly"


def test_table_2_has_its_own_cost_and_status(context):
    table1 = run(CELL, context)

    def stop(*_, **__):
        raise KeyboardInterrupt

    def status():
        return status_of(TABLE2, "stand-in", out=context.out, data=context.data).word

    assert status() == "not run"
    with pytest.raises(KeyboardInterrupt):
        run(TABLE2, replace(context, progress=stop))
    assert status() == "partly"
    (folder,) = (context.out / "runs" / table1.runs["noisy"][0]).glob("shared-*")
    before = cost_of(folder)["seconds"]
    result = run(TABLE2, replace(context, machine="a Ray cluster at 10.0.0.1:6379"))
    assert status() == "done"
    assert result.seconds == cost_of(folder)["seconds"] > before > 0
    assert result.seconds != table1.seconds
    assert result.machine.endswith(", then a Ray cluster at 10.0.0.1:6379")


def test_table_2_uses_the_given_trainer(context, trainer):
    run(TABLE2, context)
    (name,) = trainer.trained
    assert name.startswith("shared-")


def test_stored_result_that_differs_from_its_records_is_replaced(context, trainer):
    messages = []
    first = run(CELL, context)
    path = context.out / CELL.name / "stand-in.json"
    edit(path, f'"ours": {first.rows["majority"].ours}', '"ours": 99.9')
    edit(path, f'"version": "{accord.__version__}"', '"version": "0.0.1"')
    assert run(CELL, replace(context, notify=messages.append)) == first
    assert load_result(context.out, CELL.name, "stand-in") == first
    (text,) = messages
    assert "stand-in.json: replaced the result of Accord 0.0.1, which differs" in text
    assert len(trainer.trained) == 1


def test_stored_result_that_matches_is_not_rewritten(context):
    messages = []
    run(CELL, context)
    path = context.out / CELL.name / "stand-in.json"
    edit(path, f'"version": "{accord.__version__}"', '"version": "0.0.1"')
    before = path.stat()
    again = run(CELL, replace(context, notify=messages.append))
    assert (again.version, messages) == ("0.0.1", [])
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_values_that_need_probabilities_are_kept(context, trainer):
    first = run(CELL, context)
    assert {"probability-average", "soft-agreement"} < first.rows.keys()
    pack_labels(context.out / "runs" / trainer.trained[0])
    assert run(CELL, context) == first
    path = context.out / CELL.name / "stand-in.json"
    edit(path, f'"ours": {first.rows["majority"].ours}', '"ours": 99.9')
    again = run(CELL, context)
    assert again.rows["majority"] == first.rows["majority"]
    assert again.rows["probability-average"] == first.rows["probability-average"]


def test_one_repetition_without_probabilities_is_reported(context, trainer):
    first = run(CELL, context)
    pack_labels(context.out / "runs" / trainer.trained[0])
    path = context.out / CELL.name / "stand-in.json"
    both = run(CELL, context, repetitions=2).rows["soft-agreement"]
    assert both.values[0] == first.rows["soft-agreement"].ours
    assert len(both.values) == 2
    path.unlink()
    again = run(CELL, context, repetitions=2)
    assert again.rows["soft-agreement"].values == (None, both.values[1])
    assert again.rows["soft-agreement"].ours == both.values[1]
    assert again.rows["soft-agreement"].standard_error is None
    assert len(again.rows["majority"].values) == 2
    why = "repetition 0: the record holds no probabilities"
    assert again.failed == {"probability-average": why, "soft-agreement": why}
    assert f"not measured: probability-average: {why}" in result_text(again)
    assert json.loads(path.read_text())["rows"]["soft-agreement"]["values"][0] is None
    assert run(CELL, context, repetitions=2) == again
    write_summary([again], context.out)
    assert "not measured" not in (context.out / "results.md").read_text()


def test_missing_published_row_is_reported(context, trainer):
    run(CELL, context)
    pack_labels(context.out / "runs" / trainer.trained[0])
    (context.out / CELL.name / "stand-in.json").unlink()
    result = run(CELL, context)
    assert result.failed == {"probability-average": "the record holds no probabilities"}
    assert "not measured: probability-average: the record" in result_text(result)
    assert run(CELL, context) == result


def test_additional_stored_repetitions_are_measured_again(context):
    first = run(CELL, context, repetitions=2)
    path = context.out / CELL.name / "stand-in.json"
    edit(path, f'"ours": {first.rows["majority"].ours}', '"ours": 99.9')
    assert run(CELL, context, repetitions=1) == first


def test_stored_cost_outlives_its_file(context, trainer):
    first = run(CELL, context)
    (context.out / "runs" / trainer.trained[0] / "effort.json").unlink()
    edit(context.out / CELL.name / "stand-in.json", f"{first.rows['majority'].ours}", "99.9")
    assert run(CELL, context) == first


def test_stored_result_suffices_without_a_gpu(context, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setitem(protocols()["scale"]["medium"], "train", SMALL)
    result = replace(run(CELL, context), scale="medium")
    names = {"noisy": [run_name(build_spec(CELL.cells["noisy"], "medium"))]}
    save_result(replace(result, runs=names), context.out)
    assert reproduce(CELL, context, scale="medium").rows == result.rows
    with pytest.raises(ChoiceError, match="requires a GPU"):
        reproduce(CELL, context, scale="medium", repetitions=2)


def test_cluster_is_named_as_the_machine(context):
    result = run(CELL, replace(context, machine="a Ray cluster at 10.0.0.1:6379"))
    assert result.machine == "a Ray cluster at 10.0.0.1:6379"


# Several targets.


def run_all(names, context, **options):
    return list(reproduce_all(find_targets(names), context, scale="stand-in", **options))


def summary(context):
    return (context.out / "results.md").read_text("utf-8")


def test_failures_come_last(context, trainer):
    messages = []
    *results, obstacle = run_all(GROUP, replace(context, notify=messages.append))
    assert [one.target for one in results] == [GROUP[0], GROUP[2]]
    assert obstacle.target.name == "table6/transfer-learning"
    assert isinstance(obstacle.error, ChoiceError)
    assert "not available at the scale stand-in" in str(obstacle.error)
    assert len(trainer.trained) == 2
    assert messages == ["1 of 3 targets cannot run; reasons at the end"]
    assert all(one.target in summary(context) for one in results)


def test_all_targets_are_planned_before_the_first_is_trained(context, trainer):
    messages = []
    context = replace(context, notify=lambda text: messages.append((text, len(trainer.trained))))
    run_all(GROUP, context)
    assert messages[0][1] == 0


def test_summary_is_updated_after_each_target(context):
    targets = find_targets(["table3/hyper-ensemble/sym"])
    stages = reproduce_all(targets, context, scale="stand-in")
    first = next(stages)
    assert first.target in summary(context)
    assert targets[1].name not in summary(context)
    second = next(stages)
    assert second.target in summary(context)


def test_failed_target_does_not_stop_the_next(context, trainer):
    def train(spec, out, progress):
        if "adversarial" in out.name:
            return RunResult(out, {2: "the loss became nan"})
        return trainer(spec, out, progress)

    names = ["table6/adversarial-network", "table6/different-optimizer"]
    (obstacle, result) = run_all(names, replace(context, train=train))
    assert isinstance(obstacle.error, TrainingError)
    assert result.target == "table6/different-optimizer"


def test_damaged_result_fails_only_its_target(context):
    messages = []
    for name in ("theory/none.json", "table1/cifar10/sym/20/stand-in.json"):
        path = context.out / name
        path.parent.mkdir(parents=True)
        path.touch()
    found = run_all(
        ["table1/cifar10/sym/20", "theory", "figure9"], replace(context, notify=messages.append)
    )
    theory, toy, table = found
    assert toy.target == "figure9"
    for one, name in ((theory, "theory"), (table, "table1/cifar10/sym/20")):
        assert isinstance(one, Failure)
        assert isinstance(one.error, SourceError)
        assert f"{name}/" in str(one.error)
    assert "not a readable result" in str(theory.error)
    assert any("none.json: not a readable result" in text for text in messages)


def test_damaged_cost_fails_only_its_target(context, trainer):
    names = ["table1/cifar10/sym/20", "table1/cifar10/sym/40"]
    run_all(names[:1], context)
    (context.out / "runs" / trainer.trained[0] / "effort.json").write_bytes(b"")
    (context.out / names[0] / "stand-in.json").unlink()
    (obstacle, result) = run_all(names, context)
    assert "effort.json: does not hold the machine and seconds" in str(obstacle.error)
    assert result.target == names[1]


@pytest.mark.parametrize("name", ["figure9"])
def test_single_target_prints_no_messages(name, context):
    messages = []
    (result,) = run_all([name], replace(context, notify=messages.append))
    assert (result.target, messages) == (name, [])


def test_interrupts_are_not_caught(context):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(GROUP, replace(context, train=stop))


def test_unwritable_summary_does_not_fail_a_target(context):
    (context.out / "results.md").mkdir(parents=True)
    messages = []
    names = ["table1/cifar10/sym/20", "table1/cifar10/sym/40"]
    results = run_all(names, replace(context, notify=messages.append))
    assert [one.target for one in results] == names
    assert "results.md: cannot write" in messages[0]


def test_summary_includes_results_stored_meanwhile(context, monkeypatch):
    first, second = run_all(["table1/cifar10/sym/20", "table1/cifar10/sym/40"], context)
    looks = iter([[first], [first, second], [first, second]])
    monkeypatch.setattr(reproduce_module, "load_results", lambda *_, **__: next(looks))
    reproduce_module.update_summary(context)
    assert second.target in summary(context)
    assert next(looks, None) is None


def test_summary_lists_every_result(context, trainer):
    run_all(["figure8/cifar100", "figure9", "table1/cifar10/sym/40"], context)
    text = summary(context)
    assert "| figure8/cifar100 | stand-in | 1 | max-agreement, 10 |" in text
    assert "| figure9 | none | 1 | [measurements](figure9/none.md) |" in text
    run_folder = context.out / "runs" / trainer.trained[-1]
    pack_record(run_folder / "test", run_folder / "test.zip", labels_only=True)
    shutil.rmtree(run_folder / "test")
    (context.out / "table1/cifar10/sym/40/stand-in.json").unlink()
    run_all(["table1/cifar10/sym/40"], context)
    assert "| probability-average |  | not measured |" in summary(context)


@pytest.mark.parametrize(
    "name", ["table1/cifar10/sym/40", "table2/cifar10/sym/40", "figure5/cifar10/sym/40"]
)
def test_calls_nest_at_most_20_frames(name, tmp_path, monkeypatch):
    monkeypatch.setitem(protocols()["scale"]["stand-in"], "train", {**SMALL, "epochs": 2})
    arguments = ["reproduce", name, "--scale", "stand-in", "--out", str(tmp_path)]
    chain = deepest_chain(lambda: run_command(arguments))
    assert chain[0].startswith("cli/app.py")
    assert len(chain) <= 20, "\n".join(chain)
