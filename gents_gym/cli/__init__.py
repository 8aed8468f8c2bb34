"""The command line ``gents-gym``; nobody imports it."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        from gents_gym import __version__

        print(f"gents-gym {__version__}")
        return
    from gents_gym.cli.program import run  # all commands and what they need: heavy

    run()
