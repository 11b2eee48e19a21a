"""Random control-flow graphs in SPIR-V: the code at every width does what the plain interpreter does.

Long: python -m tests.pure.random.graphs 0 1000 --codegen
"""

import pytest

from tests.pure.random.graphs import check_code

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_random_graph(seed):
    check_code(seed)
