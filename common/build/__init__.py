"""Builds a stage for a target and imports it."""
