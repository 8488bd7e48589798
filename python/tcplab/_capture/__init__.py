"""What captures and logs of connections say about traffic, and models made of it."""
