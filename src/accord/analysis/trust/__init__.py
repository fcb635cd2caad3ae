"""How far to trust a prediction, and a score on labels that may be wrong."""
