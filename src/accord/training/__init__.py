"""Training: networks, the readable loop (both need torch, which nothing here imports by itself)."""
