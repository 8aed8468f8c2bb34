"""Reading and showing: what the files of an evaluation say, in tables, comparisons, figures and a page."""
