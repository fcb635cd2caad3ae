"""Any Zarr reader opens a record: zarr-python, which does not write the rows, reads them."""

import json

import numpy as np
import zarr
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder


def test_zarr_reads_what_the_recorder_wrote(path):
    names = ["Äpfel", "b", "c", "d", "e"]
    write_record(path, truth=labels_of(9, 9), class_names=names, ids=np.arange(SAMPLES))
    group = zarr.open_group(path, mode="r")
    for network in range(2):
        expected = [labels_of(network, epoch) for epoch in range(3)]
        np.testing.assert_array_equal(group[f"network-00{network}/labels"][:], expected)
    np.testing.assert_array_equal(group["truth"][:], labels_of(9, 9))
    assert group["class_names"][:].tolist() == names
    commits = [json.loads(commit) for commit in group["network-000/commits"][:]]
    assert [commit["progress"] for commit in commits] == [1.0, 2.0, 3.0]
    assert group.attrs["accord"]["samples"] == SAMPLES


def test_zarr_walks_the_whole_tree_without_a_warning(path):
    write_record(path, networks=1, epochs=1)
    members = dict(zarr.open_group(path, mode="r").members(max_depth=None))
    assert sorted(members) == [
        "network-000",
        "network-000/commits",
        "network-000/labels",
    ]


def test_zarr_reads_probabilities_and_wide_labels(path):
    tables = np.random.default_rng(0).dirichlet(np.ones(300), SAMPLES)
    with Recorder(path, network=0, samples=SAMPLES, classes=300, probabilities=True) as recorder:
        recorder.record(tables)
    group = zarr.open_group(path, mode="r")["network-000"]
    assert group["labels"].dtype == "uint16"
    np.testing.assert_array_equal(group["labels"][0], tables.argmax(axis=1))
    np.testing.assert_array_equal(group["probabilities"][0], tables.astype(np.float16))


def test_chunks_of_zeros_are_written(path):
    with Recorder(path, network=0, samples=SAMPLES, classes=CLASSES) as recorder:
        recorder.record(np.zeros(SAMPLES, int))
    assert (path / "network-000/labels/c.0.0").is_file()
