"""A trace as one HTML page that needs nothing else: the packets, compressed, and page.html, which reads them.

The browser reads the trace, not this module: a page is there at once however long the trace is.
"""

from __future__ import annotations

import base64
import zlib
from html import escape
from pathlib import Path

_GZIP = 16 + zlib.MAX_WBITS


def page(title: str, trace: bytes) -> str:
    """The page of a trace, which is whole packets."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    packed = packer.compress(trace) + packer.flush()
    text = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    before, rest = text.split("DATA", 1)
    return before.replace("TITLE", escape(title)) + base64.b64encode(packed).decode() + rest
