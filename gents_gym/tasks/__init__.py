"""Holds the task distributions, which draw batches of tasks."""
