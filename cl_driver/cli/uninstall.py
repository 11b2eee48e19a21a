"""Undoes install: removes cl_driver.icd from the place that the options mean."""

from __future__ import annotations

import argparse

from .. import registration
from . import install

arguments = install.arguments


def run(options: argparse.Namespace) -> int:
    """The subcommand."""
    target = install.folder(options)
    if registration.uninstall(target):
        print(f"removed {target / registration.FILE}")
    else:
        print(f"there is no {target / registration.FILE}")
    return 0
