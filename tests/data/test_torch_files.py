"""What torch saves is read without torch, old stream or zip."""

import os
import zipfile

import numpy as np
import pytest
import torch

from accord.data._pickle import load_torch
from accord.errors import SourceError

VALUES = {
    "clean_label": np.arange(20) % 10,
    "noisy": torch.arange(6).reshape(2, 3),
    "turned": torch.arange(6).reshape(2, 3).T,
    "part": torch.arange(10)[4:8:2],
    "half": torch.tensor([0.5, -1.0], dtype=torch.float16),
    "flags": torch.tensor([True, False]),
    "names": ["a", b"b", 1.5, None],
    "none": torch.zeros(0, dtype=torch.int32),
    "one": torch.tensor(7),
}
either_format = pytest.mark.parametrize("as_zip", [True, False])


def save(path, values, as_zip):
    torch.save(values, path, _use_new_zipfile_serialization=as_zip)
    return path


@either_format
def test_arrays_and_tensors_come_back_as_arrays(tmp_path, as_zip):
    loaded = load_torch(save(tmp_path / "a.pt", VALUES, as_zip))
    assert loaded.keys() == VALUES.keys()
    for name, value in VALUES.items():
        if name == "names":
            assert loaded[name] == value
        else:
            np.testing.assert_array_equal(loaded[name], np.asarray(value))
            assert loaded[name].dtype == np.asarray(value).dtype


def test_a_stream_of_old_is_read(tmp_path, legacy_torch):
    data = legacy_torch({"worse_label": np.array([3, 1], np.int64)})
    assert b"numpy.core.multiarray" in data
    (tmp_path / "old.pt").write_bytes(data)
    assert load_torch(tmp_path / "old.pt")["worse_label"].tolist() == [3, 1]


class Malicious:
    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return os.system, (f"touch {self.victim}",)


@either_format
def test_a_command_does_not_run(tmp_path, as_zip):
    path = save(tmp_path / "a.pt", {"labels": Malicious(tmp_path / "victim")}, as_zip)
    with pytest.raises(SourceError, match=r"a\.pt: refused to load `posix\.system`"):
        load_torch(path)
    assert not (tmp_path / "victim").exists()


@either_format
def test_a_network_is_refused_by_name(tmp_path, as_zip):
    path = save(tmp_path / "a.pt", torch.nn.Linear(2, 2), as_zip)
    with pytest.raises(SourceError, match=r"refused to load `torch\.nn\.modules\.linear\.Linear`"):
        load_torch(path)


@either_format
def test_a_file_that_is_cut_off_is_told(tmp_path, as_zip):
    path = save(tmp_path / "a.pt", VALUES, as_zip)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(SourceError, match=r"a\.pt: damaged, or not a pickle"):
        load_torch(path)


def test_a_zip_of_something_else_is_told(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(SourceError, match=r"a\.pt: damaged.*one data\.pkl"):
        load_torch(tmp_path / "a.pt")


def test_a_plain_pickle_is_told(tmp_path, python2_pickle):
    (tmp_path / "a.pt").write_bytes(python2_pickle({"labels": [1]}))
    with pytest.raises(SourceError, match=r"a\.pt: damaged.*begin as torch files do"):
        load_torch(tmp_path / "a.pt")


def test_a_tensor_larger_than_its_storage_is_refused(tmp_path):
    tensor = torch.zeros(1, dtype=torch.int64).expand(1000)
    path = save(tmp_path / "a.pt", tensor, as_zip=True)
    with pytest.raises(SourceError, match=r"damaged.*a tensor is larger than its storage"):
        load_torch(path)
