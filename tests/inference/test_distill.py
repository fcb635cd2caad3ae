"""A student is a run of its own, trained on targets from the votes of another run."""

import shutil

import numpy as np
import pytest

import accord
from accord.errors import ChoiceError, SourceError, SpecError
from accord.inference import MethodAccuracy, infer, plan_distillation
from accord.inference._distill import _plain_spec, _with_epochs
from accord.store import check_record
from accord.training import Run, load_spec, network_specs, parse_spec, train


@pytest.fixture(scope="module")
def distilled(distillable, tmp_path_factory):
    out = tmp_path_factory.mktemp("students") / "student"
    return accord.distill(distillable, students=2, out=out)


def test_students_are_a_run_like_any_other(distilled, distillable):
    spec, teacher = load_spec(distilled.run / "spec.toml"), load_spec(distillable / "spec.toml")
    assert spec.data == teacher.data
    assert spec.noise == teacher.noise
    seeds = [[one.seed for one in network_specs(some)] for some in (spec, teacher)]
    assert not set(seeds[0]) & set(seeds[1])
    assert spec.train.optimizer.weight_decay == 1e-3
    record = accord.open(distilled.run)
    assert (record.networks, record.epochs) == (2, teacher.train.epochs)
    given = accord.open(distilled.run, split="train").given
    np.testing.assert_array_equal(given, accord.open(distillable, split="train").given)
    assert check_record(distilled.run / "test").sound
    found = infer(distilled.run, Run.open(distilled.run).data.splits["test"].inputs)
    assert found.epochs == (spec.train.epochs - 1,)
    assert found.voters == 2


def test_students_beat_a_network_of_the_run(distilled):
    rows = {one.name: one for one in distilled.methods}
    assert list(rows) == [
        "single",
        "majority",
        "max-agreement",
        "student",
        "average of the students",
    ]
    assert distilled.reference == "truth"
    assert distilled.accuracy == rows["student"].accuracy > rows["single"].accuracy + 0.03
    assert distilled.accuracy_all == rows["average of the students"].accuracy
    record = accord.open(distilled.run)
    assert distilled.accuracy == record.score("single")[0].accuracy
    assert distilled.accuracy_all == record.score("probability-average")[0].accuracy
    assert rows["max-agreement"].passes == 3 * 12


def test_a_finished_student_is_not_trained_again_and_another_is_refused(distilled, distillable):
    events = []
    again = accord.distill(distillable, students=2, out=distilled.run, progress=events.append)
    assert (again.accuracy, events) == (distilled.accuracy, [])
    targets = (distilled.run / "targets.npy").read_bytes()
    with pytest.raises(SpecError, match="holds a run of another spec"):
        accord.distill(distillable, "shares", students=2, out=distilled.run)
    assert (distilled.run / "targets.npy").read_bytes() == targets


def test_the_default_folder_is_in_the_run_and_can_be_overwritten(distillable, copy_run):
    run = copy_run(distillable)
    options = {"epochs": 1, "overwrite": True}
    for targets in ("given", "map"):
        found = accord.distill(run, targets, **options)
        assert found.run == run / "student"
        assert Run.open(found.run).data.targets.max(axis=1).all()
    assert found.accuracy_all == found.accuracy
    assert accord.open(run).networks == 3  # still the run's own record


def test_extra_samples_are_trained_on_and_not_recorded(distillable, tmp_path, digits):
    np.save(tmp_path / "extra.npy", digits.inputs[:20])
    options = {"epochs": 1, "extra": tmp_path / "extra.npy", "out": tmp_path / "student"}
    found = accord.distill(distillable, **options)
    run = Run.open(found.run)
    assert len(run.data.splits["train"]) == 400 + 20
    assert not (found.run / "train").exists()


def test_a_comparison_trains_baselines_from_the_same_seeds(distillable, tmp_path):
    out = tmp_path / "student"
    found = accord.distill(distillable, epochs=4, out=out, compare=True)
    rows = {one.name: one for one in found.methods}
    baselines = ["given labels", "weight decay 0.005", "1 epoch", "labels not flagged"]
    assert list(rows)[3:] == ["student", *baselines]
    for name in ("student", *baselines):
        assert len(rows[name].per_network) == 3
        low, high = rows[name].interval
        assert low < rows[name].accuracy < high
    specs = {path.name: load_spec(path / "spec.toml") for path in tmp_path.glob("*-compare/*")}
    assert len({str(spec.train.networks) for spec in specs.values()}) == 1
    assert specs["1-epoch"].train.epochs == 1
    assert specs["given-labels"].train.targets is None
    assert specs["weight-decay-0.005"].train.optimizer.weight_decay == 0.005
    audit = accord.open(distillable, split="train").audit()
    kept = Run.open(tmp_path / "student-compare/labels-not-flagged").data
    assert len(kept.splits["train"]) == (~audit.flagged).sum()


def test_a_cross_fitted_run_without_a_test_split_has_students(tmp_path):
    inputs = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    labels = (inputs[:, 0] > 0).astype(int)
    np.savez(tmp_path / "data.npz", inputs=inputs, labels=np.where(np.arange(90) % 6, labels, 0))
    text = f"""
name = "folds"
data = {{ kind = "npz", path = "{tmp_path / "data.npz"}", held_out = 0, cross_fit = 2 }}
[train]
networks = [{{ network = "random", options = {{}} }}, {{}}]
network = "mlp"
options = {{ widths = [8] }}
epochs = 6
batch = 16
[record]
splits = ["train"]
probabilities = true
"""
    train(parse_spec(text), tmp_path / "run")
    found = accord.distill(tmp_path / "run", "shares")
    assert (found.accuracy, found.methods, found.reference) == (None, (), None)
    spec = load_spec(found.run / "spec.toml")
    assert (spec.data.cross_fit, spec.record.splits) == (None, ("train",))
    assert network_specs(spec)[0].network == "mlp"
    with pytest.raises(ChoiceError, match="a comparison requires a test split"):
        accord.distill(tmp_path / "run", "shares", compare=True, out=tmp_path / "other")
    with pytest.raises(ChoiceError, match="extra samples require a test split"):
        accord.distill(tmp_path / "run", "shares", extra=tmp_path / "data.npz")


def test_students_of_students_start_from_given_labels(distilled):
    plain = _plain_spec(Run.open(distilled.run), students=1, epochs=None)
    assert (plain.train.targets, plain.train.extra) == (None, None)


def test_a_schedule_keeps_its_shape_over_other_epochs():
    text = """
name = "steps"
data = { kind = "digits" }
[train]
epochs = 40
schedule = { kind = "step", milestones = [20, 30], warmup = 4, cycle = 10 }
"""
    schedule = _with_epochs(parse_spec(text), 10).train.schedule
    assert (schedule.milestones, schedule.warmup, schedule.cycle) == ((5, 7.5), 1, 2)


def test_the_interval_is_students():
    scipy = pytest.importorskip("scipy.stats")
    for count in (2, 3, 5, 10):
        values = tuple(np.random.default_rng(count).random(count).tolist())
        found = MethodAccuracy("one", values).interval
        wanted = scipy.t.interval(0.95, count - 1, np.mean(values), scipy.sem(values))
        np.testing.assert_allclose(found, wanted, atol=1e-3)
    assert MethodAccuracy("one", (0.5,)).interval is None


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"targets": "postrior"}, ChoiceError, "no targets are called 'postrior'. Did you mean"),
        ({"students": 0}, ChoiceError, "students must be at least 1; got 0"),
        ({"epochs": 0}, ChoiceError, "epochs must be at least 1; got 0"),
        ({"extra": "nowhere.npz"}, SourceError, "nowhere.npz: no such file"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(distillable, options, error, match):
    with pytest.raises(error, match=match):
        plan_distillation(distillable, **options)
    assert not (distillable / "student").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path, distillable):
    with pytest.raises(SourceError, match="no such folder"):
        accord.distill(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="is a record of predictions, not a run"):
        accord.distill(distillable / "train")


def test_an_interrupted_distillation_resumes_to_the_same_bits(distillable, distilled, tmp_path):
    def stop(event):
        if event.epoch == 3:
            raise KeyboardInterrupt

    out = tmp_path / "student"
    with pytest.raises(KeyboardInterrupt):
        accord.distill(distillable, students=2, out=out, progress=stop)
    shutil.copytree(out, tmp_path / "moved")
    accord.distill(distillable, students=2, out=tmp_path / "moved")
    for split in ("test", "train"):
        labels = [accord.open(one / split).labels[:] for one in (tmp_path / "moved", distilled.run)]
        np.testing.assert_array_equal(*labels)
