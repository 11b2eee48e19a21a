"""LLVM IR as text: types, forms of values, functions, flags, metadata, the registry of lowerings."""
