"""Shows the files of an evaluation as tables, comparisons, figures and a page."""
