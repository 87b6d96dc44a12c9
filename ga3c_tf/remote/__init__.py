"""Experimental: agents on other machines of a Ray cluster."""
