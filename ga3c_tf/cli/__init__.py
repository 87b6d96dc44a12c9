"""The command line, `ga3c-tf`."""
