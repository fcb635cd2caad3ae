"""A plan describes a run without changing anything."""

import pytest
import torch
from small_run import SMALL_CNN, TEXT, changed

from accord.errors import SpecError
from accord.training import default_out, parse_spec, plan_run
from accord.training._plan import duration_text, plan_text


def test_a_plan_counts_what_would_be_recorded(whole, tmp_path):
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


def test_a_plan_for_a_folder_of_another_spec_is_refused(whole):
    with pytest.raises(SpecError, match=r'holds a run of another spec(?s:.*)"epochs": 5'):
        plan_run(parse_spec(changed(("epochs = 4", "epochs = 5"))), whole)


def test_a_plan_estimates_the_time_that_remains(whole, tmp_path):
    spec, threads = parse_spec(TEXT), torch.get_num_threads()
    plan = plan_run(spec, tmp_path / "new")
    assert plan.seconds > 0
    assert f"about {duration_text(plan.seconds)} of training" in plan_text(spec, plan, whole)
    assert plan_run(spec, whole).seconds == 0
    assert torch.get_num_threads() == threads


def test_a_plan_imports_no_user_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text("raise AssertionError('imported')\n")
    spec = parse_spec(changed((SMALL_CNN, 'network = "mine:net"')))
    plan = plan_run(spec, tmp_path / "new")
    assert plan.seconds is None
    assert plan.notes == ("network 'mine:net' is not imported, so that its time is unknown",)
