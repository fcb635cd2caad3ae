"""Any Zarr reader opens a record: zarr-python, which does not write the rows, reads them."""

import json

import numpy as np
import xarray as xr
import zarr
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder
from accord.store import pack_record


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


def test_xarray_opens_every_group_and_the_whole_tree(path, tmp_path):
    names, options = list("abcde"), {"consolidated": False}
    write_record(path, truth=labels_of(9, 9), class_names=names, ids=np.arange(SAMPLES))
    pack_record(path, tmp_path / "packed")
    packed = xr.open_zarr(tmp_path / "packed", **options)
    assert packed.labels.dims == ("network", "epoch", "sample")
    assert packed.truth.dims == packed.ids.dims == ("sample",)
    assert packed.class_names.dims == ("class",)
    tree = xr.open_datatree(path, engine="zarr", **options)
    for number in range(2):
        one = xr.open_zarr(path / f"network-00{number}", **options)
        assert one.labels.dims == ("epoch", "sample")
        assert one.commits.dims == ("epoch",)
        np.testing.assert_array_equal(one.labels, packed.labels[number])
        np.testing.assert_array_equal(tree[f"network-00{number}"].labels, one.labels)


def test_xarray_names_the_axes_of_probabilities(path, tmp_path):
    with Recorder(path, network=0, samples=2, classes=3, probabilities=True) as recorder:
        recorder.record(np.eye(3)[:2])
    pack_record(path, tmp_path / "packed")
    one = xr.open_zarr(path / "network-000", consolidated=False)
    assert one.probabilities.dims == ("epoch", "sample", "class")
    packed = xr.open_zarr(tmp_path / "packed", consolidated=False)
    assert packed.probabilities.dims == ("network", "epoch", "sample", "class")
