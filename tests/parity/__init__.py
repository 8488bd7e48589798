"""Measures how closely the simulator's TCP follows the kernel's: `make parity`."""
