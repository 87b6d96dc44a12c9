"""A model on several devices: a replica on each, whose updates are joined or go to central weights."""
