"""What captures and logs of connections tell, and models and twins that are made of it."""
