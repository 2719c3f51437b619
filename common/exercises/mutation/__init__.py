"""Mutation testing of the exercises' checks: small changes to a solution, each of which its check must refuse."""
