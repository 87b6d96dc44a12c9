"""One module for each table or figure of the paper: its runs, measures, verdicts and drawing."""
