"""Trains sequence models offline on historical rows and writes them to folders."""
