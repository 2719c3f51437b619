"""Runs compilers and setup.py, and caches what they build."""
