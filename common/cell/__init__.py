"""The cell that every stage computes: its reference, cases of calls, what is saved for backward."""
