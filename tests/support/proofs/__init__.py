"""Proofs: slow tests of content that seldom changes, which run only when something changed (plugin.py)."""
