"""Playing and keeping: rollouts, regret, the grid of cells, who plays them and the folder of results."""
