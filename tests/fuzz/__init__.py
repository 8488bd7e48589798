"""Random experiments on both backends, compared ACK for ACK: `make fuzz`."""
