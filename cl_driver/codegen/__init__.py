"""From a kernel plan (passes/ir/plan.py) to LLVM IR text. Entry: kernel/emit.py."""
