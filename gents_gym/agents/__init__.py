"""Holds the agents, one algorithm per file; each agent plays B tasks at once."""
