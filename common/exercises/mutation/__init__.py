"""Mutation testing of the exercises' checks: each small change to a solution must make its check fail."""
