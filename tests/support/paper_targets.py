"""Targets of the paper, reproduced with digits in the tests."""

import shutil

from accord.experiments.paper import all_targets, reproduce
from accord.store import pack_record

CELL = all_targets()["table1/cifar10/sym/40"]
TABLE2 = all_targets()["table2/cifar10/sym/40"]


def run(target, context, **options):
    """Reproduce a target at the scale stand-in."""
    return reproduce(target, context, scale="stand-in", **options)


def edit(path, old, new):
    """Replace a text that the file must contain."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def pack_labels(folder):
    """Replace a run's record by a packed one without probabilities."""
    pack_record(folder / "test", folder / "test.zip", labels_only=True)
    shutil.rmtree(folder / "test")
