"""Races within and between groups, and barriers that not all work-items come to: the whole report of each."""

from __future__ import annotations

from tests.loader.check.kernels import kernel_tests

# name: (the kernel's body behind IDS, what is told of it).
WRONG = {
    "write of what others have read, and itself as the last": (
        "  t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[0]; if (l == 15) t[0] = -1;",
        """data race: write of 4 bytes
  at program.cl:3:74
      t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[0]; if (l == 15) t[0] = -1;
                                                                             ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  at byte 0 of local memory, argument 't', which has 64 bytes
  with a read
  at program.cl:3:50
      t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[0]; if (l == 15) t[0] = -1;
                                                     ^
  by other work-items
  4 times in this launch
""",
    ),
    "what comes of local memory that nobody has written": (
        "  int x = t[15]; b[x] = i;",
        """read of 4 bytes that nobody has written
  at program.cl:3:11
      int x = t[15]; b[x] = i;
              ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 60 of local memory, argument 't', which has 64 bytes
  4 times in this launch
cl_driver check: kernel 'k': data race: write of 4 bytes
  at program.cl:3:23
      int x = t[15]; b[x] = i;
                          ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  at byte 0 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
  with a write
  at program.cl:3:23
      int x = t[15]; b[x] = i;
                          ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  63 times in this launch
""",
    ),
    "write, then read of another's": (
        "  t[l] = i; if (l) b[i] = t[l - 1];",
        """data race: read of 4 bytes
  at program.cl:3:27
      t[l] = i; if (l) b[i] = t[l - 1];
                              ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  at byte 0 of local memory, argument 't', which has 64 bytes
  with a write
  at program.cl:3:8
      t[l] = i; if (l) b[i] = t[l - 1];
           ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  60 times in this launch
""",
    ),
    "a barrier is missing after the read": (
        "  t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); int x = t[15 - l]; t[l] = x;",
        """data race: read of 4 bytes
  at program.cl:3:51
      t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); int x = t[15 - l]; t[l] = x;
                                                      ^
  by work-item (8, 0, 0), group (0, 0, 0), local id (8, 0, 0)
  at byte 28 of local memory, argument 't', which has 64 bytes
  with a write
  at program.cl:3:67
      t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); int x = t[15 - l]; t[l] = x;
                                                                      ^
  by work-item (7, 0, 0), group (0, 0, 0), local id (7, 0, 0)
  64 times in this launch
""",
    ),
    "a barrier for the other memory": (
        "  b[i] = i; barrier(CLK_LOCAL_MEM_FENCE); if (l == 3) a[i] = b[i - 1];",
        """data race: read of 4 bytes
  at program.cl:3:62
      b[i] = i; barrier(CLK_LOCAL_MEM_FENCE); if (l == 3) a[i] = b[i - 1];
                                                                 ^
  by work-item (3, 0, 0), group (0, 0, 0), local id (3, 0, 0)
  at byte 8 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
  with a write
  at program.cl:3:8
      b[i] = i; barrier(CLK_LOCAL_MEM_FENCE); if (l == 3) a[i] = b[i - 1];
           ^
  by work-item (2, 0, 0), group (0, 0, 0), local id (2, 0, 0)
  4 times in this launch
""",
    ),
    "two groups write to one place": (
        "  if (l == 0) b[5] = i;",
        """data race: write of 4 bytes
  at program.cl:3:20
      if (l == 0) b[5] = i;
                       ^
  by work-item (16, 0, 0), group (1, 0, 0), local id (0, 0, 0)
  at byte 20 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
  with a write
  at program.cl:3:20
      if (l == 0) b[5] = i;
                       ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  3 times in this launch
""",
    ),
    "atomic after a plain write": (
        "  if (i == 0) a[0] = 5; atomic_inc(a);",
        """data race: atomic of 4 bytes
  at program.cl:3:25
      if (i == 0) a[0] = 5; atomic_inc(a);
                            ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  at byte 0 of global memory, argument 'a', which has 256 bytes (allocation #, made by clCreateBuffer)
  with an atomic
  at program.cl:3:25
      if (i == 0) a[0] = 5; atomic_inc(a);
                            ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  63 times in this launch
""",
    ),
    "nobody waits for a copy": (
        "  async_work_group_copy(t, a + 16 * get_group_id(0), 16, 0);",
        """copy of a group that nobody waits for (wait_group_events)
  at program.cl:3:3
      async_work_group_copy(t, a + 16 * get_group_id(0), 16, 0);
      ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  4 times in this launch
""",
    ),
    "divergent barrier": (
        "  if (l > 3) barrier(CLK_LOCAL_MEM_FENCE);",
        """barrier that not all work-items of the group come to
  at program.cl:3:14
      if (l > 3) barrier(CLK_LOCAL_MEM_FENCE);
                 ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  4 work-items of the group have returned, or go another way
  4 times in this launch
""",
    ),
    "two barriers": (
        "  if (l & 1) barrier(CLK_LOCAL_MEM_FENCE); else barrier(CLK_GLOBAL_MEM_FENCE);",
        """barrier that not all work-items of the group come to
  at program.cl:3:14
      if (l & 1) barrier(CLK_LOCAL_MEM_FENCE); else barrier(CLK_GLOBAL_MEM_FENCE);
                 ^
  by work-item (1, 0, 0), group (0, 0, 0), local id (1, 0, 0)
  others of the group have come to another barrier
  at program.cl:3:49
      if (l & 1) barrier(CLK_LOCAL_MEM_FENCE); else barrier(CLK_GLOBAL_MEM_FENCE);
                                                    ^
  4 times in this launch
""",
    ),
}

# The same, as they should be.
RIGHT = {
    "barrier between": "  t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[15 - l];",
    "two barriers": (
        "  t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); int x = t[15 - l]; barrier(CLK_LOCAL_MEM_FENCE); t[l] = x;"
    ),
    "barrier for global memory": "  b[i] = i; barrier(CLK_GLOBAL_MEM_FENCE); if (l) a[i] = b[i - 1];",
    "atomics": "  atomic_add(a + 3, i);",
    "the same value": "  b[5] = 1;",
    "the same vector": "  *(global int4 *)(b + 4) = (int4)(1, 2, 3, 4);",
    "the same bytes": "  *(global short *)(b + 4) = 7;",
    "components of one vector": "  if (i < 4) ((global int *)&((global int4 *)b)[1])[i] = i;\n"
    "  if (i == 8) ((global int4 *)b)[0].x = 1; if (i == 9) ((global int4 *)b)[0].y = 2;",
    "neighbouring bytes": "  ((global char *)b)[i] = i; ((global char *)b)[i + 64] = i;",
    "all read one place": "  b[i] = a[3] + a[4];",
    "barrier in a loop": (
        "  t[l] = i;\n"
        "  for (int s = 8; s; s >>= 1) { barrier(CLK_LOCAL_MEM_FENCE); if (l < s) t[l] += t[l + s]; }"
    ),
    "uniform condition": "  if (n > 3) { t[l] = 1; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[15 - l]; }",
    "copies of groups": (
        "  event_t e = async_work_group_copy(t, a + 16 * get_group_id(0), 16, 0);\n"
        "  wait_group_events(1, &e);\n"
        "  t[l] += 1; barrier(CLK_LOCAL_MEM_FENCE);\n"
        "  e = async_work_group_copy(b + 16 * get_group_id(0), t, 16, 0);\n  wait_group_events(1, &e);"
    ),
    "lock of groups": (
        "  if (l == 0) {\n"
        "    volatile global atomic_flag *lock = (volatile global atomic_flag *)(a + 0);\n"
        "    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire, memory_scope_device));\n"
        "    a[1] += 1;\n"
        "    atomic_flag_clear_explicit(lock, memory_order_release, memory_scope_device);\n"
        "  }"
    ),
    "the last group": (
        "  local int last; a[i] = i; mem_fence(CLK_GLOBAL_MEM_FENCE); barrier(CLK_GLOBAL_MEM_FENCE);\n"
        "  if (l == 0) { mem_fence(CLK_GLOBAL_MEM_FENCE); last = atomic_inc(a + 63) == 66;\n"
        "    mem_fence(CLK_GLOBAL_MEM_FENCE); }\n"
        "  barrier(CLK_LOCAL_MEM_FENCE); if (last) b[l] = a[l];"
    ),
}


found, test_report, test_no_report = kernel_tests(WRONG, RIGHT)


def test_launches_that_are_long_over_race_with_nothing(reports):
    found = reports([("few", 3), ("many", 4200)], "many_launches")
    assert found["few"] == found["many"] == ""
    assert found["a race"].startswith("cl_driver check: kernel 'racing': data race: write of 4 bytes")
