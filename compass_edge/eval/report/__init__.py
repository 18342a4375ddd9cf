"""The report of an evaluation: one page that needs nothing else, and its pictures as files."""
