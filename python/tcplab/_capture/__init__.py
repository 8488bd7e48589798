"""Analysis of captures and connection logs, and the models and twins derived from them."""
