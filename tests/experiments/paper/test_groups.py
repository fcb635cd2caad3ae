"""Of several targets, what can run does, and the rest is named with the reason."""

import shutil
from dataclasses import replace

import pytest

from accord.errors import ChoiceError, SourceError, TrainingError
from accord.experiments.paper import Failure, find_targets, reproduce_all
from accord.experiments.paper import _reproduce as groups
from accord.store._packed import pack_record
from accord.training.run import RunResult

GROUP = [
    f"table6/{one}" for one in ("adversarial-network", "transfer-learning", "different-optimizer")
]


def run(names, workshop, **more):
    return list(reproduce_all(find_targets(names), workshop, scale="stand-in", **more))


def summary(workshop):
    return (workshop.out / "results.md").read_text("utf-8")


def test_what_can_run_does_and_the_rest_comes_last(workshop, trainer):
    said = []
    *results, obstacle = run(GROUP, replace(workshop, say=said.append))
    assert [one.target for one in results] == [GROUP[0], GROUP[2]]
    assert obstacle.target.name == "table6/transfer-learning"
    assert isinstance(obstacle.error, ChoiceError)
    assert "no stand-in" in str(obstacle.error)
    assert len(trainer.trained) == 2
    assert said == ["1 of 3 targets cannot run; why, at the end"]
    assert all(one.target in summary(workshop) for one in results)


def test_all_are_checked_before_the_first_is_trained(workshop, trainer):
    said = []
    workshop = replace(workshop, say=lambda text: said.append((text, len(trainer.trained))))
    run(GROUP, workshop)
    assert said[0][1] == 0


def test_the_summary_is_kept_up_to_date_after_each(workshop):
    targets = find_targets(["table3/hyper-ensemble/sym"])
    stages = reproduce_all(targets, workshop, scale="stand-in")
    first = next(stages)
    assert first.target in summary(workshop)
    assert targets[1].name not in summary(workshop)
    second = next(stages)
    assert second.target in summary(workshop)


def test_a_target_that_fails_in_its_turn_does_not_stop_the_next(workshop, trainer):
    def train(spec, out, progress):
        if "adversarial" in out.name:
            return RunResult(out, {2: "the loss became nan"})
        return trainer(spec, out, progress)

    names = ["table6/adversarial-network", "table6/different-optimizer"]
    (obstacle, result) = run(names, replace(workshop, train=train))
    assert isinstance(obstacle.error, TrainingError)
    assert result.target == "table6/different-optimizer"


def test_one_damaged_result_breaks_nothing_else(workshop):
    said = []
    for name in ("theory/thought.json", "table1/cifar10/sym/20/stand-in.json"):
        path = workshop.out / name
        path.parent.mkdir(parents=True)
        path.touch()
    found = run(["table1/cifar10/sym/20", "theory", "figure9"], replace(workshop, say=said.append))
    theory, toy, table = found
    assert toy.target == "figure9"
    for one, name in ((theory, "theory"), (table, "table1/cifar10/sym/20")):
        assert isinstance(one, Failure)
        assert isinstance(one.error, SourceError)
        assert f"{name}/" in str(one.error)
    assert "not a result that can be read" in str(theory.error)
    assert any("thought.json: not a result that can be read" in text for text in said)


def test_a_damaged_effort_stops_its_own_target_alone(workshop, trainer):
    names = ["table1/cifar10/sym/20", "table1/cifar10/sym/40"]
    run(names[:1], workshop)
    (workshop.out / "runs" / trainer.trained[0] / "effort.json").write_bytes(b"")
    (workshop.out / names[0] / "stand-in.json").unlink()
    (obstacle, result) = run(names, workshop)
    assert "effort.json: does not say who trained" in str(obstacle.error)
    assert result.target == names[1]


@pytest.mark.parametrize("name", ["figure9"])
def test_one_target_alone_needs_no_words(name, workshop):
    said = []
    (result,) = run([name], replace(workshop, say=said.append))
    assert (result.target, said) == (name, [])


def test_interrupts_are_not_obstacles(workshop):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(GROUP, replace(workshop, train=stop))


def test_a_summary_that_cannot_be_written_costs_no_result(workshop):
    (workshop.out / "results.md").mkdir(parents=True)
    said = []
    names = ["table1/cifar10/sym/20", "table1/cifar10/sym/40"]
    results = run(names, replace(workshop, say=said.append))
    assert [one.target for one in results] == names
    assert "results.md: cannot write" in said[0]


def test_a_result_that_came_meanwhile_is_summed_up_too(workshop, monkeypatch):
    first, second = run(["table1/cifar10/sym/20", "table1/cifar10/sym/40"], workshop)
    looks = iter([[first], [first, second], [first, second]])
    monkeypatch.setattr(groups, "load_results", lambda *_, **__: next(looks))
    groups.sum_up(workshop)
    assert second.target in summary(workshop)
    assert next(looks, None) is None


def test_a_summary_leaves_no_result_out(workshop, trainer):
    run(["figure8/cifar100", "figure9", "table1/cifar10/sym/40"], workshop)
    told = summary(workshop)
    assert "| figure8/cifar100 | stand-in | 1 | max-agreement, 10 |" in told
    assert "| figure9 | thought | 1 | [what it shows](figure9/thought.md) |" in told
    run_folder = workshop.out / "runs" / trainer.trained[-1]
    pack_record(run_folder / "test", run_folder / "test.zip", labels_only=True)
    shutil.rmtree(run_folder / "test")
    (workshop.out / "table1/cifar10/sym/40/stand-in.json").unlink()
    run(["table1/cifar10/sym/40"], workshop)
    assert "| probability-average |  | not measured |" in summary(workshop)
