"""Data to train on: readers of published layouts, splits, label noise."""

from accord.data._dataset import Dataset, Inputs, Split, fewer_per_class, hold_out
from accord.data._image_cache import prepare_images
from accord.data._images import ImageFiles
from accord.data.noise import NOISES, add_noise
from accord.data.readers import READERS, Reader, read_dataset

__all__ = [
    "NOISES",
    "READERS",
    "Dataset",
    "ImageFiles",
    "Inputs",
    "Reader",
    "Split",
    "add_noise",
    "fewer_per_class",
    "hold_out",
    "prepare_images",
    "read_dataset",
]
