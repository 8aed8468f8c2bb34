"""The one style of all figures: looks of agents and models, canvases, and names beside curves."""
