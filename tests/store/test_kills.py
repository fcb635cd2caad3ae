"""Writers are killed at random times; no acknowledged row is lost."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from recorded import CLASSES, SAMPLES, labels_of

from accord._recorder import Recorder
from accord.errors import NotARecord, RecordBusy, UnequalNetworks
from accord.store import check_record, open_reader

KILLS = 24  # over two writers

WRITER = """
import os, sys
sys.path.insert(0, sys.argv[4])
from recorded import CLASSES, SAMPLES, labels_of
from accord import Recorder

path, network, acknowledged = sys.argv[1], int(sys.argv[2]), sys.argv[3]
notes = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with Recorder(path, network=network, samples=SAMPLES, classes=CLASSES) as recorder:
    start = recorder.epochs
    while True:
        epoch = recorder.epochs
        recorder.record(labels_of(network, epoch), noted=epoch)
        os.write(notes, b"%d\\n" % epoch)
        if epoch == start:
            print("writing", flush=True)
"""


class KilledWriter:
    """A process that records until it is killed."""

    def __init__(self, path, network, support):
        self.network = network
        self.notes = path.with_name(f"acknowledged-{network}")
        self._command = [sys.executable, "-c", WRITER, path, str(network), self.notes, support]
        self._process = None

    def start(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE)

    def wait_until_writing(self):
        assert self._process.stdout.readline() == b"writing\n"

    def kill(self):
        self._process.kill()
        self._process.communicate(timeout=300)
        assert self._process.returncode == -signal.SIGKILL

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate(timeout=300)

    def acknowledged(self):
        return [int(line) for line in self.notes.read_text().splitlines()]


@pytest.fixture
def make_writers(path, request):
    """Create writers that are killed when the test ends, whatever it raises."""
    support, made = str(request.config.rootpath / "tests" / "support"), []

    def make(count):
        made.extend(KilledWriter(path, network, support) for network in range(count))
        return made

    yield make
    for writer in made:
        writer.stop()


def assert_rows_are_right(rows):
    for position, network in enumerate(rows.numbers):
        for epoch in range(rows.epochs):
            labels = rows.read_labels([position], [epoch], slice(None))[0, 0]
            np.testing.assert_array_equal(labels, labels_of(network, epoch))


def read_while_writing(path):
    try:
        rows = open_reader(path, common=True)
    except (NotARecord, UnequalNetworks):  # one of the two has no row yet
        return
    assert_rows_are_right(rows)


@pytest.mark.slow
def test_no_acknowledged_row_is_lost_when_writers_are_killed(path, make_writers):
    writers = make_writers(2)
    chance = random.Random(0)
    for _ in range(KILLS // 2):
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.wait_until_writing()
        time.sleep(chance.uniform(0, 0.02))
        read_while_writing(path)
        for writer in chance.sample(writers, 2):
            time.sleep(chance.uniform(0, 0.01))
            writer.kill()
        assert check_record(path).sound
    for writer in writers:
        with Recorder(path, network=writer.network, samples=SAMPLES, classes=CLASSES) as recorder:
            noted = writer.acknowledged()
            assert noted == list(dict.fromkeys(noted)), "a row was acknowledged twice"
            assert len(noted) >= KILLS // 2
            # A kill between the commit and the note leaves a row that was never acknowledged.
            assert set(noted) <= set(range(recorder.epochs))
            assert recorder.epochs - len(noted) <= KILLS // 2
            recorder.record(labels_of(writer.network, recorder.epochs))
    assert_rows_are_right(open_reader(path, common=True))
    assert not list(path.rglob("*.part")), "reopening removes partially written files"


def test_several_processes_write_at_once_but_only_one_per_network(path, make_writers):
    writers = make_writers(3)
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.wait_until_writing()
    with pytest.raises(RecordBusy, match="another recorder holds this network"):
        Recorder(path, network=1, samples=SAMPLES, classes=CLASSES)
    for writer in writers:
        writer.kill()
    assert check_record(path).sound
    assert open_reader(path, common=True).networks == 3
