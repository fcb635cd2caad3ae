"""Measurements of tables and figures."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from paper_targets import CELL, edit, run

import accord
from accord.errors import (
    SourceError,
)
from accord.experiments.paper import (
    SCALES,
    all_targets,
    build_spec,
    reproduce,
    result_text,
    status_of,
)
from accord.experiments.paper._measure_targets import _test_images
from accord.experiments.paper._results import save_result


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
def test_each_table_has_its_own_rows(name, rows, context):
    result = run(all_targets()[name], context)
    assert result.rows.keys() == rows
    assert all(row.paper is not None and 0 < row.ours <= 100 for row in result.rows.values())


def test_ensembles_are_measured_by_their_own_rule(context, trainer):
    for name, own in (("batch-ensemble", "probability-average"), ("hyper-ensemble", "majority")):
        result = run(all_targets()[f"table3/{name}/sym/20"], context)
        record = accord.open(context.out / "runs" / trainer.trained[-1] / "test")
        assert record.networks == 4
        assert result.rows["original"].ours == 100 * record.score([own])[0].accuracy


def test_ablation_scores_the_best_single_network(context, trainer):
    result = run(all_targets()["table6/adversarial-network"], context)
    record = accord.open(context.out / "runs" / trainer.trained[0] / "test")
    each = record.score(["single"])[0].per_network
    assert result.rows["single"].ours == 100 * max(each)


def test_sizes_range_up_to_all_networks(context, trainer):
    rows = run(all_targets()["table4/cifar10/sym/40"], context).rows
    record = accord.open(context.out / "runs" / trainer.trained[0] / "test")
    sweep = record.by_networks("max-agreement")
    assert record.networks == 8
    assert rows["max-agreement-5"].ours == pytest.approx(100 * sweep.mean[4])
    assert rows["max-agreement-opt"].ours == pytest.approx(100 * max(sweep.mean))
    assert rows["max-agreement-networks"].ours == int(np.argmax(sweep.mean)) + 1
    assert rows["majority-opt"].paper == 84.2


@pytest.mark.parametrize(
    "name", ["figure2/cifar10/asym/20", "figure3/cifar10/sym/60", "figure8/cifar100"]
)
def test_figures_store_their_numbers_and_are_drawn(name, context, trainer, monkeypatch):
    target = all_targets()[name]
    result = run(target, context)
    path = context.out / name / "stand-in"
    assert path.with_suffix(".svg").read_text("utf-8").startswith("<?xml")
    assert result.numbers["panels"][0]["name"] == f"digits instead of {target.description}"
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(path.with_suffix(".json").read_text("utf-8"))["numbers"] == result.numbers
    monkeypatch.setitem(SCALES, "stand-in", replace(SCALES["stand-in"], repetitions=3))
    status = status_of(target, "stand-in", out=context.out, data=context.data)
    assert status.word == "done"  # one repetition is all that a figure shows
    path.with_suffix(".svg").unlink()
    run(target, context)
    assert path.with_suffix(".svg").exists()
    assert len(trainer.trained) == len(set(trainer.trained))


def test_figure_is_drawn_from_stored_numbers(context, trainer):
    target = all_targets()["figure2/cifar10/asym/20"]
    run(target, context)
    shutil.rmtree(context.out / "runs")
    (context.out / target.name / "stand-in.svg").unlink()
    run(target, context)
    assert (context.out / target.name / "stand-in.svg").exists()
    assert len(trainer.trained) == 1


def test_damaged_numbers_of_a_figure_raise(context):
    target = all_targets()["figure2/cifar10/asym/20"]
    run(target, context)
    shutil.rmtree(context.out / "runs")
    (context.out / target.name / "stand-in.svg").unlink()
    edit(context.out / target.name / "stand-in.json", '"panels"', '"panes"')
    with pytest.raises(SourceError, match=r"stand-in\.json: its numbers cannot be drawn"):
        run(target, context)


def test_figure_is_redrawn_only_if_its_numbers_change(context):
    target = all_targets()["figure2/cifar10/asym/20"]
    first = run(target, context)
    path = context.out / target.name / "stand-in"
    (count, *_) = first.numbers["panels"][0]["wrong_predictions"]
    edit(path.with_suffix(".json"), f"    {count},", f"    {count + 1},")
    path.with_suffix(".svg").write_text("old", "utf-8")
    assert run(target, context).numbers == first.numbers
    assert path.with_suffix(".svg").read_text("utf-8") != "old"
    path.with_suffix(".svg").write_text("old", "utf-8")
    run(target, context)
    assert path.with_suffix(".svg").read_text("utf-8") == "old"  # nothing has changed


def test_figure_1_keeps_its_picture_without_the_data(context):
    target = all_targets()["figure1"]
    first = run(target, context)
    (panel,) = first.numbers["panels"]
    assert panel["picture"] is not None
    kept = replace(
        first, numbers={**first.numbers, "panels": [{**panel, "picture": [[[1, 2, 3]]]}]}
    )
    save_result(kept, context.out)

    def no_data(*_):
        return "digits"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.experiments.paper._measure_targets.missing_data", no_data)
        assert run(target, context).numbers["panels"][0]["picture"] == [[[1, 2, 3]]]
        other = {**panel, "sample": panel["sample"] + 1}  # another sample than the picture's
        save_result(replace(first, numbers={**first.numbers, "panels": [other]}), context.out)
        assert run(target, context).numbers["panels"][0]["picture"] is None
    assert run(target, context).numbers == first.numbers


def test_figure_shows_one_run(context):
    target = all_targets()["figure2/cifar10/asym/20"]
    result = run(target, context, repetitions=3)
    assert result.repetitions == 1
    assert "scale stand-in, 1 repetition (a figure shows one run)," in result_text(result)
    assert "one run" not in result_text(run(CELL, context))


def test_test_images_come_from_the_data_folder(spellings):
    spec = build_spec(CELL.cells["noisy"], "quick")
    assert _test_images(spec, spellings[0]).shape == (20, 32, 32, 3)
    assert _test_images(spec, spellings[0] / "nowhere") is None


@pytest.mark.parametrize("name", ["figure9"])
def test_analytic_target_is_drawn(name, context, trainer):
    result = reproduce(all_targets()[name], context, scale="paper")
    assert result.numbers
    assert (context.out / name / "none.svg").exists()
    assert trainer.trained == []
    assert (
        status_of(all_targets()[name], "quick", out=context.out, data=context.data).word == "done"
    )


def test_analytic_target_is_computed_once(context, monkeypatch):
    target = all_targets()["figure9"]
    first = reproduce(target, context)
    path = context.out / "figure9/none.md"
    text = path.read_text("utf-8")
    assert "wrong in % of the plane: the networks 2.3, 5.2, 2.0; their majority 1.8" in text
    assert first.version == accord.__version__

    def again():
        raise AssertionError("computed twice")

    monkeypatch.setattr("accord.experiments.paper._measure_targets.run_toy", again)
    path.write_text("written by an earlier version", "utf-8")
    assert reproduce(target, context) == first
    assert path.read_text("utf-8") == text
    (context.out / "figure9/none.png").unlink()
    with pytest.raises(AssertionError, match="computed twice"):
        reproduce(target, context)


def test_missing_picture_is_drawn_from_stored_numbers(context):
    target = all_targets()["figure9"]
    reproduce(target, context)
    edit(context.out / "figure9/none.json", '"epochs": 18', '"epochs": 19')
    (context.out / "figure9/none.png").unlink()
    assert reproduce(target, context).numbers["epochs"] == 19
    assert (context.out / "figure9/none.png").exists()


def test_result_without_its_numbers_raises(context):
    target = all_targets()["figure9"]
    reproduce(target, context)
    edit(context.out / "figure9/none.json", '"majority"', '"mayority"')
    with pytest.raises(SourceError, match=r"none\.json: not a readable result"):
        reproduce(target, context)
