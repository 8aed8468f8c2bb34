"""Holds the policy classes Π, which fit policies to complete tables."""
