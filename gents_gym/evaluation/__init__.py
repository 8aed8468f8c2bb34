"""Evaluation: rollouts in, regret, tables and figures out."""
