"""The paper's advantage actor-critic, with corrections of policy lag and the objectives of later methods."""
