"""Algorithms: a folder for each, with its loss, its model and what it reads of a trajectory."""
