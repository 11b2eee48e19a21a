"""Writes what the compiler makes into cl_driver/ARCHITECTURE.md: python -m tests.pages [--spirv]

--spirv: the kernel's SPIR-V is compiled anew first, by the clang of this machine.
"""

from __future__ import annotations

import argparse

from .page import PAGE, differing, with_blocks
from .stages import MADE_BY, MODULE, Stages, clang_version, compile_kernel


def main() -> None:
    """Rewrites the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("--spirv", action="store_true", help="compile the kernel anew")
    if parser.parse_args().spirv:
        MODULE.write_bytes(compile_kernel())
        MADE_BY.write_text(clang_version() + "\n")
    page, stages = PAGE.read_text(), Stages()
    blocks = {**stages.blocks(), **stages.machine_blocks()}
    print("changed:", ", ".join(differing(page, blocks)) or "nothing")
    PAGE.write_text(with_blocks(page, blocks))


if __name__ == "__main__":
    main()
