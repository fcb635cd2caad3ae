"""Experiments: the demo, comparisons, the paper's tables and figures, clusters, benchmarks."""
