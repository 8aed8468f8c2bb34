"""The command line ``gents-gym``; nobody imports it."""

import sys

import gents_gym


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        print(f"gents-gym {gents_gym.__version__}")
        return
    from gents_gym.cli.program import run  # all commands and what they need: heavy

    run()
