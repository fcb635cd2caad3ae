"""Training from a spec: networks, losses, the readable loop and the lockstep, runs.

They need torch, which nothing here imports by itself.
"""
