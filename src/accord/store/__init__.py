"""Write, read, check, pack and import records of predictions.

`Writer` appends the rows of one network; `open_reader` returns a `RecordReader`, the interface
that rules and analysis read, over an unpacked or packed record; `ArrayReader` is the same in
memory. `_record_format` defines keys and documents, `_storage` and `_object_store` where they are
kept.
"""

from accord.store._check_record import CheckReport, Description, Finding, check_record, describe
from accord.store._import_record import import_arrays, import_record, reader_from_arrays
from accord.store._metadata import make_sample_info, record_paths
from accord.store._packed import pack_record, write_packed
from accord.store._packed_reader import PackedReader
from accord.store._record_format import label_dtype, made_with, network_folder
from accord.store._record_reader import ArrayReader, Block, NetworkInfo, RecordReader, SampleInfo
from accord.store._removal import remove_networks
from accord.store._selection import check_numbers
from accord.store._storage import CountProgress, Folder, Storage, open_storage
from accord.store._unpacked_reader import open_reader
from accord.store._validation import row_from_logits, row_from_predictions, to_numpy
from accord.store._writer import Writer

__all__ = [
    "ArrayReader",
    "Block",
    "CheckReport",
    "CountProgress",
    "Description",
    "Finding",
    "Folder",
    "NetworkInfo",
    "PackedReader",
    "RecordReader",
    "SampleInfo",
    "Storage",
    "Writer",
    "check_numbers",
    "check_record",
    "describe",
    "import_arrays",
    "import_record",
    "label_dtype",
    "made_with",
    "make_sample_info",
    "network_folder",
    "open_reader",
    "open_storage",
    "pack_record",
    "reader_from_arrays",
    "record_paths",
    "remove_networks",
    "row_from_logits",
    "row_from_predictions",
    "to_numpy",
    "write_packed",
]
