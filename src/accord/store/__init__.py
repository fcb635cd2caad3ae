"""The record on disk: written row by row, read in blocks, checked, packed, imported."""

from accord.store.check import CheckReport, Finding, check_record
from accord.store.describe import Description, describe
from accord.store.facts import make_facts
from accord.store.imports import import_arrays, import_record, rows_from_arrays
from accord.store.pack import pack_record, write_packed
from accord.store.reader import open_rows
from accord.store.rows import ArrayRows, Block, Facts, Rows, Told
from accord.store.writer import Writer

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
