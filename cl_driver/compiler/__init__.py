"""The compiler as one function: source, passes, code generation, objects, code for some launches."""
