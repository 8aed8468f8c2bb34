"""Answers from logs: what other agents would have earned, without playing them."""
