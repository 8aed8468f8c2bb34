"""Sequence models p_θ and the exact p*: histories of one action in, probabilities of its next outcome out."""
