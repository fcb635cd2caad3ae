"""Targets that train no network."""

import pytest
from paper_targets import edit

import accord
from accord.errors import (
    SourceError,
)
from accord.experiments.paper import (
    all_targets,
    reproduce,
    status_of,
)


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

    monkeypatch.setattr("accord.experiments.paper._analytic.run_toy", again)
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
