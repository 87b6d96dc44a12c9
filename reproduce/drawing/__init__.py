"""Draws figures and learning curves. The only package that imports matplotlib."""
