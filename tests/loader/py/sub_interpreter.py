"""OpenCL from a sub-interpreter, as web servers run programs. Usage: sub_interpreter.py LIBOPENCL [thread]

thread: nobody uses OpenCL before a thread of the sub-interpreter does.
"""

import sys
from pathlib import Path

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

HOST = Path(__file__).with_name("host.py")


def code(scene):
    """What runs the other script's scene."""
    arguments = ["host.py", sys.argv[1], scene]
    return f"import sys\nsys.argv = {arguments!r}\nexec(open({str(HOST)!r}).read(), {{'__name__': 'host'}})"


def in_thread(text):
    """What runs that in a thread."""
    return f"""
import threading
failed = []
def run():
    try:
        exec({text!r}, {{}})
    except BaseException as error:
        failed.append(error)
thread = threading.Thread(target=run)
thread.start()
thread.join()
if failed:
    raise failed[0]
"""


def create(shares_gil):
    """One with a GIL of its own where this Python makes such (from 3.12 on), or one that may have threads."""
    if not shares_gil:
        return interpreters.create()
    try:
        return interpreters.create(isolated=False)
    except TypeError:
        return interpreters.create("legacy")


def check_that_ctypes_cannot_be_had():
    """If it ever can, the test is to use it."""
    try:
        interpreters.run_string(create(shares_gil=False), "import _ctypes")
    except interpreters.RunFailedError as error:
        assert "_ctypes does not support loading in subinterpreters" in str(error), error
    else:
        raise AssertionError("interpreters with a GIL of their own have ctypes")


# Interpreters have GILs of their own from 3.12 on, but ctypes and cffi refuse those of 3.12.
refused = sys.version_info[:2] == (3, 12)
if refused:
    check_that_ctypes_cannot_be_had()
sub = create(shares_gil=refused or bool(sys.argv[2:]))
for scene in ("use", "use_gil"):
    if sys.argv[2:] == ["thread"]:
        interpreters.run_string(sub, in_thread(code(scene)))
    exec(code(scene), {})
    interpreters.run_string(sub, code(scene))
    exec(code(scene), {})
