"""User code: networks, losses and environments of users' own modules, or passed as Python objects."""

from ga3c_tf.plugins.errors import one_line, users_errors
from ga3c_tf.plugins.modules import PLACES, check_trust, import_users_module, named_code, users_function
from ga3c_tf.plugins.objects import (
    KNOWN_EVERYWHERE,
    OBJECT,
    installer,
    name_of,
    objects_called,
    passed_object,
)

__all__ = [
    "KNOWN_EVERYWHERE",
    "OBJECT",
    "PLACES",
    "check_trust",
    "import_users_module",
    "installer",
    "name_of",
    "named_code",
    "objects_called",
    "one_line",
    "passed_object",
    "users_errors",
    "users_function",
]
