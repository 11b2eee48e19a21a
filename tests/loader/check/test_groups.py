"""Atomics, events of copies of groups, sub-groups: the whole report of each."""

from __future__ import annotations

from tests.loader.check.kernels import kernel_tests

# name: (the kernel's body behind IDS, what is told of it).
WRONG = {
    "atomic on a private variable": (
        "  int x = i; atomic_fetch_add((atomic_int *)&x, 3); b[i] = x;",
        """atomic of 4 bytes on private memory, variable 'x'
  at program.cl:3:14
      int x = i; atomic_fetch_add((atomic_int *)&x, 3); b[i] = x;
                 ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  64 times in this launch
""",
    ),
    "generic pointer to private memory": (
        ("  int x = i, *p = i & 1 ? &x : (int *)t + l; *p = 1;\n  atomic_fetch_add((atomic_int *)p, 3);"),
        """atomic of 4 bytes on private memory
  at program.cl:4:3
      atomic_fetch_add((atomic_int *)p, 3);
      ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  32 times in this launch
""",
    ),
    "the same behind a barrier": (
        (
            "  int x = i, *p = i & 1 ? &x : (int *)t + l; *p = 1;\n"
            "  barrier(CLK_LOCAL_MEM_FENCE);\n"
            "  atomic_fetch_add((atomic_int *)p, x);"
        ),
        """atomic of 4 bytes on private memory
  at program.cl:5:3
      atomic_fetch_add((atomic_int *)p, x);
      ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  32 times in this launch
""",
    ),
    "misaligned atomic": (
        "  atomic_inc((global int *)((global char *)a + 2));",
        """atomic of 4 bytes at an address that is no multiple of 4
  at program.cl:3:3
      atomic_inc((global int *)((global char *)a + 2));
      ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 2 of global memory, argument 'a', which has 256 bytes (allocation #, made by clCreateBuffer)
  64 times in this launch
""",
    ),
    "atomic on constant memory": (
        "  constant int c[2] = {1, 2}; atomic_inc((global int *)(ulong)(c + 1)); b[i] = c[l & 1];",
        """atomic of 4 bytes on constant memory, variable 'k.c'
  at program.cl:3:31
      constant int c[2] = {1, 2}; atomic_inc((global int *)(ulong)(c + 1)); b[i] = c[l & 1];
                                  ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  64 times in this launch
""",
    ),
    "write to constant memory": (
        "  constant int c[2] = {1, 2}; ((global int *)(ulong)c)[l & 1] = 3; b[i] = c[l & 1];",
        """write of 4 bytes of constant memory, variable 'k.c', which a kernel may not change
  at program.cl:3:63
      constant int c[2] = {1, 2}; ((global int *)(ulong)c)[l & 1] = 3; b[i] = c[l & 1];
                                                                  ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  64 times in this launch
""",
    ),
    "plain read beside an atomic": (
        "  if (i == 5) b[i] = a[3]; atomic_inc(a + 3);",
        """data race: read of 4 bytes
  at program.cl:3:22
      if (i == 5) b[i] = a[3]; atomic_inc(a + 3);
                         ^
  by work-item (5, 0, 0), group (0, 0, 0), local id (5, 0, 0)
  at byte 12 of global memory, argument 'a', which has 256 bytes (allocation #, made by clCreateBuffer)
  with an atomic
  at program.cl:3:28
      if (i == 5) b[i] = a[3]; atomic_inc(a + 3);
                               ^
  by work-item (4, 0, 0), group (0, 0, 0), local id (4, 0, 0)
""",
    ),
    "wait for no event": (
        "  event_t e = 0; wait_group_events(1, &e); b[i] = 1;",
        """wait for an event that no copy of the group has (wait_group_events)
  at program.cl:3:18
      event_t e = 0; wait_group_events(1, &e); b[i] = 1;
                     ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  64 times in this launch
""",
    ),
    "waits for other events": (
        (
            "  event_t e[2]; e[0] = async_work_group_copy(t, a, 4, 0);\n"
            "  e[1] = async_work_group_copy(t + 4, a + 4, 4, 0);\n"
            "  wait_group_events(1, e + (l & 1)); b[i] = t[0];"
        ),
        """wait_group_events that not all work-items of the group come to, or for other events
  at program.cl:5:3
      wait_group_events(1, e + (l & 1)); b[i] = t[0];
      ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  4 times in this launch
cl_driver check: kernel 'k': copy of a group that nobody waits for (wait_group_events)
  at program.cl:4:10
      e[1] = async_work_group_copy(t + 4, a + 4, 4, 0);
             ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  4 times in this launch
""",
    ),
    "waits for one of two copies": (
        (
            "  event_t e[2]; e[0] = async_work_group_copy(t, a, 4, 0);\n"
            "  e[1] = async_work_group_copy(t + 4, a + 4, 4, 0);\n"
            "  wait_group_events(1, e); b[i] = t[0];"
        ),
        """copy of a group that nobody waits for (wait_group_events)
  at program.cl:4:10
      e[1] = async_work_group_copy(t + 4, a + 4, 4, 0);
             ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  4 times in this launch
""",
    ),
    "kernel with sub-groups": (
        "  b[i + 1] = sub_group_reduce_add(a[i]) + get_sub_group_size();",
        """write of 4 bytes out of bounds
  at program.cl:3:12
      b[i + 1] = sub_group_reduce_add(a[i]) + get_sub_group_size();
               ^
  by work-item (63, 0, 0), group (3, 0, 0), local id (15, 0, 0)
  at byte 256 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
}

# The same, as they should be.
RIGHT = {
    "atomics on all memory that has them": (
        "  t[l] = i; barrier(CLK_LOCAL_MEM_FENCE);\n"
        "  int *p = i & 1 ? (int *)a + 3 : (int *)t;\n"
        "  atomic_fetch_add((atomic_int *)p, 3); atomic_inc(a + 4); atomic_inc(t + 1);"
    ),
    "events in an array": (
        "  event_t e[2]; e[0] = async_work_group_copy(t, a, 4, 0);\n"
        "  e[1] = async_work_group_copy(t + 4, a + 4, 4, 0);\n"
        "  wait_group_events(2, e); b[i] = t[5];"
    ),
    "events one by one": (
        "  event_t e[2]; e[0] = async_work_group_copy(t, a, 4, 0);\n"
        "  e[1] = async_work_group_copy(t + 4, a + 4, 4, 0);\n"
        "  wait_group_events(1, e + 1); wait_group_events(1, e); b[i] = t[5];"
    ),
    "one event for two copies": (
        "  event_t e = async_work_group_copy(t, a, 4, 0);\n"
        "  e = async_work_group_copy(t + 4, a + 4, 4, e);\n"
        "  wait_group_events(1, &e); b[i] = t[5];"
    ),
    "one event in a loop": (
        "  event_t e = 0; for (int k = 0; k < 4;\n"
        "  k++) e = async_work_group_copy(t + 4 * k, a + 4 * k, 4, e);\n"
        "  wait_group_events(1, &e); b[i] = t[l];"
    ),
    "copy in two dimensions": (
        "  event_t e = async_work_group_copy_2D2D(t, 0, a, 0, 4, 2, 2, 4, 2, 0);\n"
        "  wait_group_events(1, &e); b[i] = t[3];"
    ),
    "sub-groups": (
        "  int s = sub_group_scan_inclusive_add(a[i]);\n"
        "  sub_group_barrier(CLK_LOCAL_MEM_FENCE);\n"
        "  b[i] = sub_group_broadcast(s, 0) + get_sub_group_id();"
    ),
}


found, test_report, test_no_report = kernel_tests(WRONG, RIGHT)
