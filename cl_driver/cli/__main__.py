"""python -m cl_driver.cli"""

import sys

from cl_driver.cli import main

sys.exit(main())
