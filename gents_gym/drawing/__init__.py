"""Defines the common style of all figures: colors and dashes of agents and models, canvases, and names at curves."""
