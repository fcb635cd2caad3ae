"""Data to train on: the embedded digits, label noise."""
