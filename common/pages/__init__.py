"""Every generated page: tables, the report, the syllabus, the notebooks."""
