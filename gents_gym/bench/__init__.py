"""Measures speed: rates and the ratios between them, all in one run."""
