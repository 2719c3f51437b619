"""Stage 8's server: its times beside those of a server in Python, and its memory under load."""
