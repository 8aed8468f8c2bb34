"""Agents: one algorithm per file, each playing B tasks at once."""
