"""Shared helpers for tests of the exercises."""
