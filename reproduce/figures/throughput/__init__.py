"""Figures about speed: predictions and updates per second, queues, dynamic adjustment, and hardware use."""
