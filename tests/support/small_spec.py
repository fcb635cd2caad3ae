"""A spec that trains within a second, for tests of what is done with it."""

SMALL = """
name = "small"
[data]
kind = "digits"
per_class = 10
[train]
networks = 2
network = "mlp"
options = { widths = [8] }
epochs = 2
"""
