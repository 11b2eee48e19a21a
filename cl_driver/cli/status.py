"""Shows where the driver is registered, which loaders see it, and where its compile cache is."""

from __future__ import annotations

import argparse
import os

from .. import native, registration, settings
from ..device.platform import ICD_SUFFIX
from ..jit.cache import Cache, default_folder


def run(options: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 if no loader sees the driver."""
    del options
    library = native.library()
    print(f"driver: {library}{'' if library.exists() else ' (not there)'}")
    for place in registration.places():
        if not place.file.exists():
            print(f"{place.folder}: not registered (read by {place.who})")
        elif wrong := registration.fault(place.file):
            print(f"{place.folder}: {wrong}")
        else:
            print(f"{place.folder}: registered (read by {place.who}): {place.file.read_text().strip()}")
    if file := registration.pyopencl():
        print(f"{file.parent}: registered (read by PyOpenCL's own loader)")
    if os.environ.get("OCL_ICD_FILENAMES"):
        print(f"OCL_ICD_FILENAMES, read by the Khronos loader: {os.environ['OCL_ICD_FILENAMES']}")
    folder = default_folder(settings.text("CL_DRIVER_CACHE_DIR"))
    print(f"compile cache: {Cache(folder, settings.integer('CL_DRIVER_CACHE_SIZE') or 0).status()}")
    seen = False
    for loader in registration.loaders():
        try:
            listed = registration.platforms(loader)
        except RuntimeError as error:
            print(f"loader {error}")
            continue
        names = ", ".join(name for _, name in listed) or "no platform"
        ours = any(suffix == ICD_SUFFIX for suffix, _ in listed)
        seen |= ours
        print(f"loader {loader}: {'sees this driver' if ours else 'does not see this driver'} ({names})")
    return 0 if seen else 1
