"""One module for each table or figure, the paper's and our own: its runs, measures, verdicts and picture."""
