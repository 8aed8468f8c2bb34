"""Measures how far a model's posterior can be trusted: predictions and completed tables against what happened."""
