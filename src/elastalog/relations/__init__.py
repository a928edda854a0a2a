"""Relations as words: schema, symbols, wide numbers, and facts in and out."""
