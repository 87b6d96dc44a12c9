"""Figures about speed: predictions and updates per second, queues, dynamic adjustment, and use of the hardware."""
