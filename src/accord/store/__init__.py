"""The record on disk: written row by row, read in blocks, checked, packed, imported."""

from accord.store._imports import import_arrays, import_record, rows_from_arrays
from accord.store._inspect import CheckReport, Description, Finding, check_record, describe
from accord.store._metadata import make_facts
from accord.store._packed import pack_record, write_packed
from accord.store._record_reader import ArrayRows, Block, Facts, Rows, Told
from accord.store._recorded import open_rows
from accord.store._writer import Writer

__all__ = [
    "ArrayRows",
    "Block",
    "CheckReport",
    "Description",
    "Facts",
    "Finding",
    "Rows",
    "Told",
    "Writer",
    "check_record",
    "describe",
    "import_arrays",
    "import_record",
    "make_facts",
    "open_rows",
    "pack_record",
    "rows_from_arrays",
    "write_packed",
]
