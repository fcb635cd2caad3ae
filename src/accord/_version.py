"""The version of Accord."""

__version__ = "0.1.0"
