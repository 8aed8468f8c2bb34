"""Reproduces the paper's experiments, each by one command that writes a page with figures and verdicts."""
