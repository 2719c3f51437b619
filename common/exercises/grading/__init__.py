"""Grades untrusted work: submissions, sandboxes, tables of marks."""
