"""LLVM IR, as LLVM prints it after its passes, changed for its code generator. README.md has the map."""
