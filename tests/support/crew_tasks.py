"""What processes of a crew do in tests."""

import os
import signal
import sys
import time

from accord.errors import RecordBusy


def count(*, network, tell):
    print("libraries print what they like")
    sys.stderr.write("and warn\n")
    tell(1.0, 0.5)
    tell(2.0, 0.25)
    return "odd" if network % 2 else None


def wait(*, network, tell):
    tell(float(os.getpid()), 0.0)
    time.sleep(60)


def refuse(*, network, tell):
    raise RecordBusy(f"network {network} is held by another")


def raise_another(*, network, tell):
    raise ZeroDivisionError("of a bug")


def die(*, network, tell):
    os.kill(os.getpid(), signal.SIGKILL)
