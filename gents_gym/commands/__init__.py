"""The commands of the command line, by subject."""
