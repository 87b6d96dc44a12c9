"""The command line, `ga3c-tf`."""

import sys

if sys.platform == "win32":  # it lacks modules that are imported everywhere, such as fcntl
    sys.exit("ga3c-tf: this package runs on Linux; on Windows use WSL 2 or Docker (docs/platforms.md)")
