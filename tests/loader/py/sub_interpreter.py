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


def create():
    """One that may have threads."""
    try:
        return interpreters.create(isolated=False)
    except TypeError:
        return interpreters.create("legacy")


sub = create() if sys.argv[2:] else interpreters.create()
for scene in ("use", "use_gil"):
    if sys.argv[2:] == ["thread"]:
        interpreters.run_string(sub, in_thread(code(scene)))
    exec(code(scene), {})
    interpreters.run_string(sub, code(scene))
    exec(code(scene), {})
