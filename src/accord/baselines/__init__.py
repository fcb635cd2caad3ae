"""Rivals of max agreement that need a network's features or weights (and so torch)."""
