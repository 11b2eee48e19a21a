"""A plain interpreter of the IR: the oracle for passes/ and codegen/ (see README.md)."""
