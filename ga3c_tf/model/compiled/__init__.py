"""What only a compiled model computes with: vectors of weights, packed uploads, and programs of XLA."""
