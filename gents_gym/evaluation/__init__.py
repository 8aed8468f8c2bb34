"""Plays agents and stores the results: rollouts, regret, the grid of cells, backends and the results folder."""
