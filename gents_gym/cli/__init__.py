"""The command line ``gents-gym``; nobody imports it."""


def main() -> None:
    """Run the command line."""
    from gents_gym.cli.program import run  # all commands and what they need: heavy

    run()
