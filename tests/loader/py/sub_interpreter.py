"""OpenCL from a sub-interpreter, as web servers run programs. Usage: sub_interpreter.py LIBOPENCL"""

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
    return f"import sys\nsys.argv = {arguments!r}\nexec(open({str(HOST)!r}).read())"


sub = interpreters.create()
for scene in ("use", "use_gil"):
    exec(code(scene), {})
    interpreters.run_string(sub, code(scene))
    exec(code(scene), {})
