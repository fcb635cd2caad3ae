"""Data to train on: readers of published layouts, splits, label noise."""

from accord.data.dataset import Dataset, Inputs, Split
from accord.data.image_files import ImageFiles
from accord.data.noise import NOISES, Noise, add_noise
from accord.data.readers import READERS, Reader, read_dataset
from accord.data.subsets import fewer_per_class, hold_out

__all__ = [
    "NOISES",
    "READERS",
    "Dataset",
    "ImageFiles",
    "Inputs",
    "Noise",
    "Reader",
    "Split",
    "add_noise",
    "fewer_per_class",
    "hold_out",
    "read_dataset",
]
