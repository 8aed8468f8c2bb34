"""The command line ``gents-gym``; nothing imports it."""

import sys

import gents_gym


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        print(f"gents-gym {gents_gym.__version__}")
        return
    from gents_gym.cli.program import run  # imports all commands and their dependencies, which is slow

    run()
