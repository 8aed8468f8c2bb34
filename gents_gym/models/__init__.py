"""Holds the sequence models p_θ and the exact p*, which predict an action's next outcome from its history."""
