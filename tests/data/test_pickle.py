"""Pickles and torch files give plain data or an error; the code that they name never runs."""

import collections
import contextlib
import io
import os
import pickle
import pickletools
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from accord.data._pickle import load_pickle, load_torch
from accord.errors import SourceError

TEXT = st.text()
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXT | st.integers() | st.binary(), inner)
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(["u1", "i1", "i2", "<i4", ">i4", "i8", "u8", "f4", ">f8", "b1", "S3", "U2"])


@pytest.fixture
def load(tmp_path):
    def load(data):
        (tmp_path / "file.pkl").write_bytes(data)
        return load_pickle(tmp_path / "file.pkl")

    return load


def through_file(data, folder):
    path = folder / "file.pkl"
    path.write_bytes(data)
    return load_pickle(path)


@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_are_loaded(tmp_path_factory, value, protocol):
    folder = tmp_path_factory.getbasetemp()
    assert through_file(pickle.dumps(value, protocol), folder) == value


@given(
    arrays.arrays(KINDS, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)),
    st.integers(2, pickle.HIGHEST_PROTOCOL),
    st.booleans(),
)
def test_arrays_are_loaded(tmp_path_factory, array, protocol, by_column):
    array = np.asfortranarray(array) if by_column else array
    loaded = through_file(pickle.dumps([array], protocol), tmp_path_factory.getbasetemp())[0]
    np.testing.assert_array_equal(loaded, array)
    assert loaded.dtype == array.dtype.newbyteorder("=")
    assert loaded.flags.writeable


def test_numpy_numbers_become_python_numbers(load):
    loaded = load(pickle.dumps({"a": np.int64(-3), "b": np.float32(0.5), "c": np.bool_(True)}))
    assert loaded == {"a": -3, "b": 0.5, "c": True}


def test_shared_lists_stay_shared(load):
    inner = [1, 2]
    loaded = load(pickle.dumps([inner, inner]))
    assert loaded[0] is loaded[1]


def test_shared_tuples_do_not_grow_without_end(load):
    bomb = ()
    for _ in range(100):
        bomb = (bomb, bomb)  # 2^100 leaves, if each were visited
    assert len(load(pickle.dumps(bomb))) == 2


def test_pickles_of_python_2_become_text_and_arrays(load, python2_pickle):
    pixels = np.arange(256, dtype=np.uint8).reshape(2, 128)
    loaded = load(python2_pickle({"data": pixels, "labels": [3, -4], "names": [b"\xe9.png"]}))
    np.testing.assert_array_equal(loaded["data"], pixels)
    assert (loaded["labels"], loaded["names"]) == ([3, -4], ["é.png"])


class Malicious:
    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_command_does_not_run(load, tmp_path, protocol):
    victim = tmp_path / "victim"
    attack = pickle.dumps({"labels": Malicious(os.system, f"touch {victim}")}, protocol)
    with pytest.raises(SourceError, match=r"file\.pkl: refused to load `posix\.system`"):
        load(attack)
    assert not victim.exists()
    pickle.loads(attack)  # the attack is real: Python's own pickle runs it
    assert victim.exists()


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        (Malicious(eval, "1"), "`(builtins|__builtin__).eval`"),
        (Malicious(getattr, "a", "upper"), "`(builtins|__builtin__).getattr`"),
        (collections.Counter("a"), "`collections.Counter`"),
        (np.array([{}, 1], dtype=object), "arrays of type 'O8'"),
        (np.zeros(2, dtype=[("a", "i4")]), "arrays of type 'V4'"),
        (np.array(["2020"], dtype="M8[D]"), "arrays of type 'M8'"),
        ({1, 2}, "a set|`builtins.set`"),
        (1j, "`builtins.complex`"),
        (np.ndarray, "an incomplete array"),
        (bytearray(b"a"), "a bytearray|`builtins.bytearray`"),
        ({(1, 2): 3}, "a dict with a tuple for a key"),
    ],
)
def test_anything_else_is_refused_by_name(load, value, refused):
    with pytest.raises(SourceError, match=rf"refused to load ({refused})\. .*only numbers"):
        load(pickle.dumps(value))


def hand_made(*parts):
    return b"\x80\x02" + b"".join(parts) + b"."


NDARRAY = b"cnumpy\nndarray\n"
EMPTY = b"cnumpy.core.multiarray\n_reconstruct\n(" + NDARRAY + b"(K\x00tU\x01btR"
DTYPE = b"cnumpy\ndtype\n(U\x02i8K\x00K\x01tR"


@pytest.mark.parametrize(
    "parts",
    [
        (EMPTY,),  # no data
        (NDARRAY, b"}b"),  # changing what a name stands for
        (NDARRAY, b"N}U\x08__call__K\x01s\x86b"),
        (b"c_codecs\nencode\n", b"(X\x01\0\0\0aX\x05\0\0\0utf16tR"),
        (EMPTY, b"(K\x01(K\x02t", DTYPE, b"I00\n]tb"),  # a list for bytes
        (b"ccollections\nOrderedDict\n", b")\x81"),  # made without its deed
        (EMPTY, b"(K\x01(K\x09t", DTYPE, b"I00\nU\x08aaaaaaaatb"),  # nine of one
        (b"]q\x00h\x00a",),  # a list that holds itself
        (b"K\x01Q",),  # a reference to outside
    ],
)
def test_crafted_pickles_are_refused(load, parts):
    pickletools.dis(hand_made(*parts), out=io.StringIO())  # well-formed: only the sense is wrong
    with pytest.raises(SourceError, match=r"file\.pkl: (refused to load|damaged)"):
        load(hand_made(*parts))


@given(st.binary(max_size=200))
def test_damaged_files_raise_one_error_and_nothing_else(tmp_path_factory, data):
    with contextlib.suppress(SourceError):
        through_file(data, tmp_path_factory.getbasetemp())


@given(st.data())
def test_a_changed_byte_raises_one_error_or_none(tmp_path_factory, data):
    whole = bytearray(pickle.dumps({"data": np.arange(6), "labels": [1, 2]}, protocol=2))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SourceError):
        through_file(bytes(whole), tmp_path_factory.getbasetemp())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"none\.pkl: cannot be read: No such file"):
        load_pickle(tmp_path / "none.pkl")


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
def test_tensors_become_arrays(tmp_path, as_zip):
    loaded = load_torch(save(tmp_path / "a.pt", VALUES, as_zip))
    assert loaded.keys() == VALUES.keys()
    for name, value in VALUES.items():
        if name == "names":
            assert loaded[name] == value
        else:
            np.testing.assert_array_equal(loaded[name], np.asarray(value))
            assert loaded[name].dtype == np.asarray(value).dtype


def test_a_legacy_stream_is_read(tmp_path, legacy_torch):
    data = legacy_torch({"worse_label": np.array([3, 1], np.int64)})
    assert b"numpy.core.multiarray" in data
    (tmp_path / "old.pt").write_bytes(data)
    assert load_torch(tmp_path / "old.pt")["worse_label"].tolist() == [3, 1]


@either_format
def test_a_command_in_a_torch_file_does_not_run(tmp_path, as_zip):
    path = save(
        tmp_path / "a.pt", {"labels": Malicious(os.system, f"touch {tmp_path / 'victim'}")}, as_zip
    )
    with pytest.raises(SourceError, match=r"a\.pt: refused to load `posix\.system`"):
        load_torch(path)
    assert not (tmp_path / "victim").exists()


@either_format
def test_a_network_is_refused_by_name(tmp_path, as_zip):
    path = save(tmp_path / "a.pt", torch.nn.Linear(2, 2), as_zip)
    with pytest.raises(SourceError, match=r"refused to load `torch\.nn\.modules\.linear\.Linear`"):
        load_torch(path)


@either_format
def test_a_truncated_file_is_refused(tmp_path, as_zip):
    path = save(tmp_path / "a.pt", VALUES, as_zip)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(SourceError, match=r"a\.pt: damaged, or not a pickle"):
        load_torch(path)


def test_another_zip_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(SourceError, match=r"a\.pt: damaged.*one data\.pkl"):
        load_torch(tmp_path / "a.pt")


def test_a_plain_pickle_is_not_a_torch_file(tmp_path, python2_pickle):
    (tmp_path / "a.pt").write_bytes(python2_pickle({"labels": [1]}))
    with pytest.raises(SourceError, match=r"a\.pt: damaged.*begin like a torch file"):
        load_torch(tmp_path / "a.pt")


def test_a_tensor_larger_than_its_storage_is_refused(tmp_path):
    tensor = torch.zeros(1, dtype=torch.int64).expand(1000)
    path = save(tmp_path / "a.pt", tensor, as_zip=True)
    with pytest.raises(SourceError, match=r"damaged.*a tensor is larger than its storage"):
        load_torch(path)
