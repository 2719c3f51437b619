"""Studies of whole sequences on a GPU: the sweep of steps, batch and state, and a driver for the kernels alone."""
