"""Proofs: slow tests of content that seldom changes, which run only after a change (plugin.py)."""
