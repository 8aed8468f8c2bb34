"""Holds small numerics that several folders share."""
