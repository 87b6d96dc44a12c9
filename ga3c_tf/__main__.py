"""Runs the command `ga3c-tf` as `python -m ga3c_tf`."""

from ga3c_tf.cli.main import program

if __name__ == "__main__":
    program()
