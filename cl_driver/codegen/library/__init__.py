"""What is called of the builtin library, and what the library calls by name."""
