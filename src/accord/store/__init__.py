"""The record on disk: written row by row, read in blocks, checked, packed, imported.

`Writer` appends the rows of one network; `open_reader` returns a `RecordReader`, the interface
that rules and analysis read, over an unpacked or packed record; `ArrayReader` is the same in
memory. `_layout` defines keys and documents, `_storage` and `_object_store` where they are kept.
"""

from accord.store._imports import import_arrays, import_record, rows_from_arrays
from accord.store._inspect import CheckReport, Description, Finding, check_record, describe
from accord.store._metadata import make_sample_info
from accord.store._packed import pack_record, write_packed
from accord.store._record_reader import ArrayReader, Block, NetworkInfo, RecordReader, SampleInfo
from accord.store._recorded import open_reader
from accord.store._validation import row_from_logits, row_from_predictions, to_numpy
from accord.store._writer import Writer

__all__ = [
    "ArrayReader",
    "Block",
    "CheckReport",
    "Description",
    "Finding",
    "NetworkInfo",
    "RecordReader",
    "SampleInfo",
    "Writer",
    "check_record",
    "describe",
    "import_arrays",
    "import_record",
    "make_sample_info",
    "open_reader",
    "pack_record",
    "row_from_logits",
    "row_from_predictions",
    "rows_from_arrays",
    "to_numpy",
    "write_packed",
]
