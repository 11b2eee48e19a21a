"""From LLVM IR to object code, kept on disk, made in compiler processes. README.md has the map."""
