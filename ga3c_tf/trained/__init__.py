"""A trained agent: its weights and policy, its evaluation, its episodes on screen, its export and publication."""
