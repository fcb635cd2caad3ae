"""Whether and when networks overfit, told from their agreement alone."""
