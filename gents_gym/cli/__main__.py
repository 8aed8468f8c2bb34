"""Runs the command line as ``python -m gents_gym.cli``."""

from gents_gym.cli import main

main()
