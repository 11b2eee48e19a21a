"""Chapter 4.4: contexts. The handles of their devices stay in C; here are the rules of their properties."""

from __future__ import annotations

from .. import spawn
from .device import Device
from .entrypoint import adopt, entrypoint, peer
from .errors import CLError, require
from .generated import enums as cl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class Context:
    """The devices that programs of this context are for."""

    invalid: ClassVar[int] = cl.CL_INVALID_CONTEXT

    def __init__(self, devices: dict[int, Device], words: list[str]) -> None:
        self.devices = devices  # by key
        self.words = words  # of frontend/options.CONTEXT_WORDS: what its programs are compiled with


@entrypoint("clCreateContext")
def create_context(properties: list[int] | None, devices: list[int]) -> tuple[int]:
    """The key of a new context (4.4). Raises CLError for properties that it must refuse.

    properties: the words of the list, with its final 0; CL_CONTEXT_PLATFORM's value is 1 if the handle is
    this platform's and 0 if it is not. devices: keys.
    """
    words = check_properties(properties or [0])
    if spawn.may_change_root():
        from ..service import process

        process.hold()
    return (adopt(Context({key: peer(key, Device) for key in devices}, words)),)


# CL_CONTEXT_MEMORY_INITIALIZE_KHR
_ZEROED = {1: "-cld-zero-local", 2: "-cld-zero-private"}


def check_properties(words: list[int]) -> list[str]:
    """What programs are compiled with for a list of properties. Raises CL_INVALID_PROPERTY and the other
    errors of one that clCreateContext must refuse (4.4)."""
    options = []
    # "CL_INVALID_PROPERTY if a context property name in properties is not a supported property name, if the
    # value specified for a supported property name is not valid, or if the same property name is specified
    # more than once."
    seen = set()
    for name, value in zip(words[:-1:2], words[1::2], strict=True):
        of = f"{value:#x}, the value of {name:#x} in properties, is no"
        require(name not in seen, cl.CL_INVALID_PROPERTY, f"properties has {name:#x} twice")
        seen.add(name)
        if name == cl.CL_CONTEXT_PLATFORM:
            # "CL_INVALID_PLATFORM [...] if the platform specified in properties is not a valid platform."
            require(value == 1, cl.CL_INVALID_PLATFORM, "the platform in properties is not this driver's")
        elif name == cl.CL_CONTEXT_INTEROP_USER_SYNC:
            require(value in (cl.CL_FALSE, cl.CL_TRUE), cl.CL_INVALID_PROPERTY, f"{of} cl_bool")
        elif name == cl.CL_CONTEXT_MEMORY_INITIALIZE_KHR:
            require(not value & ~sum(_ZEROED), cl.CL_INVALID_PROPERTY, f"{of} memory to initialise")
            options += [word for bit, word in _ZEROED.items() if value & bit]
        elif name == cl.CL_CONTEXT_TERMINATE_KHR:
            require(value in (cl.CL_FALSE, cl.CL_TRUE), cl.CL_INVALID_PROPERTY, f"{of} cl_bool")
            options += ["-cld-terminate"] * value
        else:
            raise CLError(cl.CL_INVALID_PROPERTY, f"properties has {name:#x}, which is none of contexts")
    return options
