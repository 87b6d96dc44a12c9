"""Draws figures and learning curves. The only package that imports matplotlib, when a picture is drawn."""
