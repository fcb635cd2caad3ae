"""Recorders: one file for each framework, predictions in, rows out."""
