"""Diagrams that show how something works; none shows a measurement."""
