"""Networks of shuffles (codegen/lockstep/shuffle_network.py) make the vectors that they are asked for."""

import random

import pytest

from cl_driver.codegen.lockstep.shuffle_network import Network


def run(network: Network, vectors: list) -> list[list]:
    """What the vectors consist of, when each step shuffles two vectors at most."""
    made = []

    def lanes_of(vector):
        return made[vector[1]] if type(vector) is tuple else [(vector, k) for k in range(network.width)]

    for step in network.steps:
        assert len(step) == network.width and len({at[0] for at in step if at is not None}) <= 2
        made.append([at and lanes_of(at[0])[at[1]] for at in step])
    return [lanes_of(vector) for vector in vectors]


def check(width: int, targets: list[list]) -> int:
    """The number of shuffles."""
    network = Network(width)
    vectors = network.solve(targets)
    for lanes, target in zip(run(network, vectors), targets, strict=True):
        assert all(want is None or got == want for got, want in zip(lanes, target, strict=True))
    return len(network.steps)


@pytest.mark.parametrize("width", (2, 4, 8, 16))
def test_transposition(width):
    targets = [[(row, column) for row in range(width)] for column in range(width)]
    assert check(width, targets) == width * (width.bit_length() - 1)


def test_nothing_to_do():
    assert check(4, [[(0, 0), (0, 1), None, (0, 3)], [(1, k) for k in range(4)]]) == 0


@pytest.mark.parametrize("seed", range(200))
def test_random(seed):
    choose = random.Random(seed)
    width, sources = choose.choice((2, 4, 8, 16)), choose.randint(1, 20)
    targets = [
        [
            None if choose.random() < 0.1 else (choose.randrange(sources), choose.randrange(width))
            for _ in range(width)
        ]
        for _ in range(choose.randint(1, 20))
    ]
    check(width, targets)
