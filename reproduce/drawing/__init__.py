"""Draws figures and learning curves. The only package that imports matplotlib."""

from ga3c_tf.host.libraries import drop_unusable_backend

drop_unusable_backend()
