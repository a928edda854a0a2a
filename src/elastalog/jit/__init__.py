"""Functions compiled to machine code: how that is done, and what they are made of."""
