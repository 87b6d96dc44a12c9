"""The declarations of all settings, by what they are about."""
