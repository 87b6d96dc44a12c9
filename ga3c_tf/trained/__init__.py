"""A trained agent: its weights and policy, evaluation, episodes on screen, export and publication."""
