"""Load data sets, add label noise and read new samples.

`read_dataset` returns a `Dataset` of a training and a test `Split`; the registry `READERS` lives in
`accord.data.readers`, one module per layout. `add_noise` changes labels by one of `NOISES`
(`accord.data.noise`). `read_samples` reads samples for networks that are already trained.
"""

from accord.data._dataset import Dataset, Inputs, Split, fewer_per_class, hold_out
from accord.data._image_cache import prepare_images
from accord.data._image_files import ImageFiles
from accord.data._new_samples import SAMPLE_FORMATS, Layout, Source, read_samples
from accord.data._schema import InputSchema, Samples
from accord.data.noise import NOISES, add_noise
from accord.data.readers import READERS, Reader, find_reader, read_dataset
from accord.data.readers.digits import Digits, load_digits, split_digits

__all__ = [
    "NOISES",
    "READERS",
    "SAMPLE_FORMATS",
    "Dataset",
    "Digits",
    "ImageFiles",
    "InputSchema",
    "Inputs",
    "Layout",
    "Reader",
    "Samples",
    "Source",
    "Split",
    "add_noise",
    "fewer_per_class",
    "find_reader",
    "hold_out",
    "load_digits",
    "prepare_images",
    "read_dataset",
    "read_samples",
    "split_digits",
]
