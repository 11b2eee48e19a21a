"""Powers with a small constant exponent (passes/lower/powers.py), special values among them."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

EXPONENTS = {"minus_one": -1, "zero": 0, "half": 0.5, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
INTEGERS = {name: value for name, value in EXPONENTS.items() if value == int(value)}
SOURCE = compile_c(
    "\n".join(
        f"kernel void {name}_{t}(global {t} *to, global const {t} *from, global {t}4 *vectors) {{"
        f" size_t i = get_global_id(0); {t} x = from[i]; to[i] = pow(x, ({t}){value});"
        f" vectors[i] = pow(({t}4)(x, -x, x * 2, 1), ({t}4)({value})); }}"
        for name, value in EXPONENTS.items()
        for t in ("float", "double")
    )
    + "\n".join(
        f"kernel void {name}_int(global float *to, global const float *from, global float4 *vectors) {{"
        f" size_t i = get_global_id(0); float x = from[i]; to[i] = pown(x, {value});"
        f" vectors[i] = pown((float4)(x, -x, x * 2, 1), (int4)({value})); }}"
        for name, value in INTEGERS.items()
    )
)
INFINITY, NAN = np.inf, np.nan


def numbers(kind):
    special = [0.0, -0.0, 1, -1, 2, -3, 0.3, -0.3, INFINITY, -INFINITY, NAN]
    limits = np.finfo(kind)
    special += [limits.max, limits.tiny, -limits.tiny, limits.smallest_subnormal]
    more = 10.0 ** np.random.default_rng(1).uniform(-1, 1, 48) * np.resize([1, -1], 48)
    return np.concatenate((np.array(special, kind), more.astype(kind)))


def is_close(found, wanted, kind):
    """Within two units in the last place; zeros have the same sign."""
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) | np.isnan(found) & np.isnan(wanted)
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.longdouble) - wanted.astype(np.longdouble))
        return same | (error <= 2 * np.spacing(np.abs(wanted)).astype(np.longdouble))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize(
    "name, value, kind",
    [(f"{name}_{t}", value, t) for name, value in EXPONENTS.items() for t in ("float", "double")]
    + [(f"{name}_int", value, "float") for name, value in INTEGERS.items()],
)
def test_results(name, value, kind, width):
    kind = np.float32 if kind == "float" else np.float64
    x = numbers(kind)
    to, vectors = np.zeros_like(x), np.zeros((len(x), 4), kind)
    Program(SOURCE, width=width).run(name, len(x), len(x), to, x, vectors)
    with np.errstate(all="ignore"):
        of_vectors = np.stack((x, -x, x * 2, np.ones_like(x)), 1)
        wanted, more = (np.power(v.astype(np.longdouble), value).astype(kind) for v in (x, of_vectors))
    assert is_close(to, wanted, kind).all()
    assert is_close(vectors, more, kind).all()


@pytest.mark.parametrize("name", [f"{name}_double" for name in EXPONENTS])
def test_no_logarithm(name):
    text = Program(SOURCE, width=1).code(name).text
    assert ("pow" in text.replace(f"cld_kernel_{name}", "")) == name.startswith("five")
