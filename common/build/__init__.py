"""Builds a stage for a target and imports it: targets, library, compilers."""
