"""NVIDIA's command-line tools on a GPU: where they are, how they run, and what they print."""
