"""Benchmarks: nothing in, rates and the ratios between them out, all measured in one run."""
