"""Plots and diagrams."""
