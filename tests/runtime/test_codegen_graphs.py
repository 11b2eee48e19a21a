"""Random control-flow graphs in SPIR-V: the code at every width does what the plain interpreter does.

Long: python -m tests.pure.random_graphs 0 1000 --codegen
"""

import pytest

from tests.pure.random_graphs import check_code


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_random_graph(seed):
    check_code(seed)
