"""The public verbs: record, open, predict."""

from accord.api.arrays import agreement, max_agreement
from accord.api.record import Record, open_record
from accord.api.recorder import Recorder

__all__ = ["Record", "Recorder", "agreement", "max_agreement", "open_record"]
