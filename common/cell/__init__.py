"""The cell that every stage computes: its reference, test cases, and the memory that is saved for backward."""
