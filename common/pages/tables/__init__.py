"""The generated tables of the pages, one module for each kind of record."""
