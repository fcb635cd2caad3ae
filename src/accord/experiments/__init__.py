"""Experiments: the demo."""
