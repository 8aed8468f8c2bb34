"""Small numerics that several folders share."""
