"""Null events and queues where clang's back end has none of them: it need not be tried with fewer passes."""

from __future__ import annotations

import pytest

from cl_driver.frontend import clang, opencl_c
from cl_driver.frontend.options import parse

ARGUMENTS = "global float *a, local float *l, queue_t q, int n"
COPY = "async_work_group_copy(l + i, a + i, 16, e)"
# What is a phi, a select and a return of a null object at clang's usual level.
SOURCES = {
    "loop": f"event_t e = 0; for (int i = 0; i < n; i++) e = {COPY}; wait_group_events(1, &e);",
    "branch": f"event_t e = 0; int i = n; if (n > 3) e = {COPY}; wait_group_events(1, &e);",
    "select": f"event_t none = 0, e = 0; int i = n; e = {COPY}; e = n > 3 ? e : none;"
    f" e = {COPY}; wait_group_events(1, &e);",
    "undefined": f"event_t e; for (int i = 0; i < n; i++) e = {COPY}; wait_group_events(1, &e);",
    "return": "event_t e = made(a, l, n); wait_group_events(1, &e); event_t f = none();"
    " wait_group_events(1, &f);",
    "queue": "queue_t none = 0; if (n > 3) none = q;"
    " for (int i = 0; i < n; i++) enqueue_kernel(none, 0, ndrange_1D(1), ^{ a[0] = 1; });",
    "two types": f"event_t e = 0; queue_t none = 0; for (int i = 0; i < n; i++) {{ e = {COPY}; none = q; }}"
    " wait_group_events(1, &e); enqueue_kernel(none, 0, ndrange_1D(1), ^{ a[0] = 1; });",
}
FUNCTIONS = f"""
__attribute__((noinline)) event_t made(global float *a, local float *l, int i) {{
    event_t e = 0; if (i > 3) e = {COPY}; return e; }}
__attribute__((noinline)) event_t none(void) {{ event_t e = 0; return e; }}
"""


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", SOURCES)
def test_one_run(monkeypatch, name, whole):
    runs, real = [], opencl_c.run
    monkeypatch.setattr(opencl_c, "run", lambda *given: runs.append(given) or real(*given))
    functions = FUNCTIONS if name == "return" else ""
    source = f"{functions}kernel void k({ARGUMENTS}) {{ {SOURCES[name]} }}"
    options = parse("-cl-std=CL3.0")
    result = opencl_c.compile(source.encode(), options, language=clang.device_language(), is_whole=whole)
    assert result.spirv is not None, result.log
    assert len(runs) == 1
