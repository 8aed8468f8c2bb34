"""Chooses an agent and its options for a model, by playing tasks that the model imagines."""
