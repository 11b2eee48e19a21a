"""Pages of the documentation that the compiler writes: python -m tests.pages"""
