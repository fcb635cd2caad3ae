"""Demo, comparisons, reproduction of the paper, cluster training and benchmarks."""
