"""python -m cl_driver.cli"""

import sys

from . import main

sys.exit(main())
