"""Memory that agents and server share."""

from __future__ import annotations

import mmap
import os
from multiprocessing import reduction

from ga3c_tf.errors import UserError
from ga3c_tf.host.resources import available_bytes


class SharedMemory:
    """Memory that exists as long as a process maps it, so nothing is left behind however the processes end.

    It comes from the kernel's anonymous memory files, to which no limit on /dev/shm applies.

    Args:
        size: size in bytes.
        advice: settings that need less memory, for the error message.

    Raises:
        UserError: there is not enough memory; the message gives the size needed.
    """

    def __init__(self, size: int, advice: str):
        room = available_bytes()
        if size > room:  # otherwise the kernel would later kill a process
            raise UserError(
                f"agents and server need {size / 2**20:.0f} MiB of shared memory, and {room / 2**20:.0f} MiB "
                f"are left here; {advice} need less"
            )
        self.size = size
        self._fd = os.memfd_create("ga3c_tf", os.MFD_CLOEXEC)
        os.posix_fallocate(self._fd, 0, size)
        self.buffer = mmap.mmap(self._fd, size)

    def __getstate__(self):
        return {"size": self.size, "descriptor": reduction.DupFd(self._fd)}

    def __setstate__(self, state):
        self.size = state["size"]
        self._fd = state["descriptor"].detach()
        self.buffer = mmap.mmap(self._fd, self.size)

    def __del__(self):
        if hasattr(self, "_fd"):
            os.close(self._fd)
