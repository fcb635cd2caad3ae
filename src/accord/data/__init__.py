"""Data to train on: readers of published layouts, splits, label noise."""

from accord.data._dataset import Dataset, Inputs, Split, fewer_per_class, hold_out
from accord.data._image_cache import prepare_images
from accord.data._images import ImageFiles
from accord.data.noise import NOISES, add_noise
from accord.data.readers import READERS, Reader, read_dataset
from accord.data.readers.digits import Digits, load_digits, split_digits

__all__ = [
    "NOISES",
    "READERS",
    "Dataset",
    "Digits",
    "ImageFiles",
    "Inputs",
    "Reader",
    "Split",
    "add_noise",
    "fewer_per_class",
    "hold_out",
    "load_digits",
    "prepare_images",
    "read_dataset",
    "split_digits",
]
