"""The results page, and the part of the README that shows results."""
