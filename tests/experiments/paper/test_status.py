"""The status of targets."""

from dataclasses import replace

import pytest
from paper_targets import CELL, run

from accord.experiments.paper import (
    SCALES,
    all_targets,
    status_of,
)


def test_status_from_missing_data_to_done(context):
    def status(scale):
        return status_of(CELL, scale, out=context.out, data=context.data)

    missing = status("quick")
    assert missing.word == "data missing"
    place = context.data / "cifar-10-batches-bin"
    assert missing.note.startswith(f"put CIFAR-10 at {place}; source: https://www.cs.tor")
    place.mkdir(parents=True)
    partly = status("quick")  # an empty folder is not enough
    assert partly.word == "data missing"
    part = f"put this part of CIFAR-10 at {place / 'data_batch_1.bin'}; source: https://www"
    assert partly.note.startswith(part)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (place / f"{name}.bin").touch()
    assert status("quick").word == status("stand-in").word == "not run"
    run(CELL, context)
    assert status("stand-in").word == "done"
    assert status("quick").word == "not run"
    (context.out / CELL.name / "stand-in.json").unlink()
    assert (status("stand-in").word, status("stand-in").note) == (
        "partly",
        "trained, not measured yet",
    )
    transfer = all_targets()["table6/transfer-learning"]
    assert status_of(transfer, "stand-in", out=context.out, data=context.data).word == "none"


def test_too_few_repetitions_are_partly_done(context, monkeypatch):
    run(CELL, context)
    monkeypatch.setitem(SCALES, "stand-in", replace(SCALES["stand-in"], repetitions=3))
    status = status_of(CELL, "stand-in", out=context.out, data=context.data)
    assert (status.word, status.note) == ("partly", "1 of 3 repetitions")


@pytest.mark.parametrize("text", ["", '{"format": 1, "rows": {}}'])
def test_damaged_result_is_partly_done(text, context):
    path = context.out / "theory/none.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    status = status_of(all_targets()["theory"], "quick", out=context.out, data=context.data)
    assert status.word == "partly"
    assert "none.json: not a readable result" in status.note
