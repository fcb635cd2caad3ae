"""The spec that the tests of comparisons train."""

from accord.training import parse_spec

TEXT = """
name = "small"
[data]
kind = "digits"
per_class = 40
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 3
network = "small-cnn"
options = { width = 4 }
epochs = 5
batch = 16
optimizer = { lr = 0.05 }
"""
SPEC = parse_spec(TEXT)


def run_of(out, name):
    """Return the folder of the only run of that name."""
    (folder,) = out.glob(f"{name}-*")
    return folder
