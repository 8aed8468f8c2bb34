"""Offline training: historical rows in, a folder with a trained sequence model out."""
