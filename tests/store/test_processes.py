"""An open record can be read in other processes, pickled or forked."""

import pickle
import subprocess
import sys
import uuid

import numpy as np
import pytest
from recorded import labels_of, write_record

from accord._record import Record
from accord.store import import_arrays, open_reader, pack_record


def run(script):
    """Run a script in a new process, which may fork: this one has threads."""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    ("form", "packed"),
    [
        ("folder", False),
        ("folder", True),
        ("file.zip", True),
        ("memory://", False),
        ("memory://", True),
    ],
)
def test_an_open_record_can_be_pickled(tmp_path, form, packed):
    path = f"memory://{uuid.uuid4()}" if form == "memory://" else str(tmp_path / form)
    if packed:
        pack_record(write_record(tmp_path / "source"), path)
    else:
        write_record(path)
    record = Record(open_reader(path))
    record.labels[0, 0]
    again = pickle.loads(pickle.dumps(record))
    np.testing.assert_array_equal(again.labels[1, 2], labels_of(1, 2))


def test_forked_processes_read_a_zip_file_at_the_same_time(tmp_path):
    labels = np.random.default_rng(0).integers(0, 10, (4, 30, 5000))
    import_arrays(tmp_path / "packed.zip", labels)
    script = f"""
import multiprocessing
import numpy as np
from accord.store import open_reader
rows = open_reader({str(tmp_path / "packed.zip")!r})
whole = range(4), range(30), slice(None)
labels = rows.read_labels(*whole)
def differ(_):
    return sum(not np.array_equal(rows.read_labels(*whole), labels) for _ in range(50))
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(differ, range(3), chunksize=1))
"""
    done = run(script)
    assert done.stdout == "[0, 0, 0]\n", done.stderr


def test_an_object_store_raises_in_a_forked_process():
    script = """
import os
import accord
from accord.store import open_reader, pack_record
with accord.Recorder("memory://rows", network=0, samples=2, classes=2) as recorder:
    recorder.record([0, 1])
pack_record("memory://rows", "memory://packed")
opened = [open_reader("memory://rows"), open_reader("memory://packed")]
child = os.fork()
if child:
    os._exit(os.waitpid(child, 0)[1])
tries = [lambda rows=rows: rows.read_labels([0], [0], slice(None)) for rows in opened]
for read in [*tries, lambda: open_reader("memory://rows")]:
    try:
        read()
    except accord.errors.StorageError as error:
        print(error, flush=True)
"""
    done = run(script)
    assert done.stdout.count("used before this process was forked") == 3, done.stderr
    assert done.stdout.count('DataLoader(…, multiprocessing_context="spawn")') == 3


def test_a_forked_process_can_be_the_first_to_use_an_object_store():
    script = """
import os
import accord
import accord.store._object_store
child = os.fork()
if child:
    os._exit(os.waitpid(child, 0)[1])
with accord.Recorder("memory://rows", network=0, samples=2, classes=2) as recorder:
    recorder.record([0, 1])
print(accord.open("memory://rows").labels[0, 0], flush=True)
"""
    done = run(script)
    assert done.stdout == "[0 1]\n", done.stderr
