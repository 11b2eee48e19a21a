"""From a kernel plan (passes/plan.py) to LLVM IR text. Entry: kernel.emit."""
