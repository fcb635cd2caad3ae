import sys
import threading
import uuid

import boto3
import numpy as np
import pytest
from moto.server import ThreadedMotoServer
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord.errors import ExtraMissing, NotARecord, RecordMissing, RowExists, StorageError
from accord.store import check_record, describe, open_reader, pack_record
from accord.store._metadata import make_sample_info
from accord.store._object_store import Bucket
from accord.store._storage import open_storage
from accord.store._validation import Row
from accord.store._writer import Writer
from accord.testing import StorageContract


class TestMemory(StorageContract):
    def make_storage(self):
        return Bucket(f"memory://{uuid.uuid4()}")


def one_by_one(app):
    """Serialize requests: in S3 one of several creators wins, with moto's threads two may."""
    lock = threading.Lock()

    def answer(environ, start_response):
        with lock:
            return app(environ, start_response)

    return answer


@pytest.fixture(scope="session")
def s3():
    """A local server with the S3 interface, by moto."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    server._server.app = one_by_one(server._server.app)
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="records")
        yield "s3://records"
    server.stop()


class TestS3(StorageContract):
    @pytest.fixture(autouse=True)
    def _server(self, s3):
        self.url = s3

    def make_storage(self):
        return Bucket(f"{self.url}/{uuid.uuid4()}")


def test_a_record_lives_in_an_object_store(s3, tmp_path):
    url = f"{s3}/run/one"
    write_record(url, truth=labels_of(9, 9))
    write_record(url, epochs=4)
    rows = open_reader(url)
    assert (rows.networks, rows.epochs) == (2, 4)
    np.testing.assert_array_equal(rows.read_labels([1], [3], slice(None))[0, 0], labels_of(1, 3))
    assert check_record(url).sound
    pack_record(url, f"{s3}/run/packed")
    packed = open_reader(f"{s3}/run/packed")
    whole = range(2), range(4), slice(None)
    np.testing.assert_array_equal(packed.read_labels(*whole), rows.read_labels(*whole))
    assert describe(f"{s3}/run/packed").size is None


@pytest.mark.parametrize("look", [open_reader, check_record, describe])
def test_a_missing_record_in_an_object_store_is_named(look):
    url = f"memory://{uuid.uuid4()}"
    with pytest.raises(RecordMissing, match=f"{url}: nothing is stored there.*accord import"):
        look(url)
    open_storage(url).put("notes.txt", b"")
    with pytest.raises(NotARecord, match=r"it has no zarr\.json"):
        look(url)


def test_a_missing_bucket_is_not_an_empty_one(s3):
    with pytest.raises(StorageError, match=r"s3://nowhere/run: cannot list: .*404 Not Found"):
        open_reader("s3://nowhere/run")


def test_a_second_writer_in_an_object_store_is_refused_at_its_first_row():
    url = f"memory://{uuid.uuid4()}"
    sample_info = make_sample_info(samples=SAMPLES, classes=CLASSES)
    first, second = (Writer(url, sample_info, network=0) for _ in range(2))
    first.write(Row(labels_of(0, 0).astype("u1")))
    with pytest.raises(RowExists, match="recorded by another writer since this one opened"):
        second.write(Row(labels_of(0, 7).astype("u1")))
    third = Writer(url, sample_info, network=0)
    third.write(Row(labels_of(0, 1).astype("u1")))
    with pytest.raises(RowExists, match="epoch 1 was recorded by another writer"):
        first.write(Row(labels_of(0, 8).astype("u1")))
    labels = open_reader(url).read_labels([0], [0, 1], slice(None))[0]
    np.testing.assert_array_equal(labels, [labels_of(0, 0), labels_of(0, 1)])


def test_a_second_writer_never_damages_a_row_of_the_first():
    """Both writers open before either writes; the second checks before the first commits."""
    url = f"memory://{uuid.uuid4()}"
    sample_info = make_sample_info(samples=SAMPLES, classes=CLASSES)
    first, second = (Writer(url, sample_info, network=0) for _ in range(2))
    look = second.storage.get

    def look_then_lose(key):
        found = look(key)
        if first.epochs == 0:
            first.write(Row(labels_of(0, 0).astype("u1")))
        return found

    second.storage.get = look_then_lose
    with pytest.raises(RowExists, match="recorded by another writer"):
        second.write(Row(labels_of(0, 7).astype("u1")))
    labels = open_reader(url).read_labels([0], [0], slice(None))[0, 0]
    np.testing.assert_array_equal(labels, labels_of(0, 0))


def test_a_url_without_the_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'accord\[cloud\]'"):
        open_storage("s3://bucket/record")


def test_a_url_of_an_unknown_kind_is_refused():
    with pytest.raises(StorageError, match="cannot be opened as an object store"):
        open_storage("gopher://hole/record")
