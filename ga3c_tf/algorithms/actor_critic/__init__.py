"""The advantage actor-critic of the paper, with corrections of policy lag and the objectives of later methods."""
