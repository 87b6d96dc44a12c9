"""A trained agent: its weights, its evaluation, its episodes in a video or a window, its export and publication."""
