"""Accesses out of bounds, of what nobody has written, and misaligned ones: the whole report of each."""

from __future__ import annotations

from tests.loader.check.kernels import kernel_tests

# name: (the kernel's body behind IDS, what is told of it).
WRONG = {
    "chosen among constant variables": (
        "  constant int c[4] = {1, 2, 3, 4}; constant int d[8] = {5}; constant int *p = i & 1 ? c : d;\n"
        "  b[i] = p[i & 7];",
        """read of 4 bytes out of bounds
  at program.cl:4:10
      b[i] = p[i & 7];
             ^
  by work-item (5, 0, 0), group (0, 0, 0), local id (5, 0, 0)
  at byte 20 of constant memory, variable 'k.c', which has 16 bytes
  16 times in this launch
""",
    ),
    "chosen among private arrays in a loop": (
        "  int c[4] = {1}, d[8] = {2}, *p = c;\n"
        "  for (int n = 0; n < (i & 3); n++) p = p == c ? d : c;\n"
        "  p[i & 7] = i; b[i] = c[i & 3] + d[i & 7];",
        """write of 4 bytes out of bounds
  at program.cl:5:12
      p[i & 7] = i; b[i] = c[i & 3] + d[i & 7];
               ^
  by work-item (4, 0, 0), group (0, 0, 0), local id (4, 0, 0)
  at byte 16 of private memory, variable 'c', which has 16 bytes
  16 times in this launch
""",
    ),
    "integer past a constant variable": (
        "  constant int c[4] = {1, 2, 3, 4}; b[i] = *(constant int *)((ulong)c + 4 * (i & 7));",
        """read of 4 bytes out of bounds
  at program.cl:3:44
      constant int c[4] = {1, 2, 3, 4}; b[i] = *(constant int *)((ulong)c + 4 * (i & 7));
                                               ^
  by work-item (4, 0, 0), group (0, 0, 0), local id (4, 0, 0)
  at byte 16 of constant memory, variable 'k.c', which has 16 bytes
  32 times in this launch
""",
    ),
    "integer far from its buffer": (
        "  b[i] = *(constant int *)(((ulong)a & ~15ul) + 4 * i + 100000);",
        """read of 4 bytes out of bounds
  at program.cl:3:10
      b[i] = *(constant int *)(((ulong)a & ~15ul) + 4 * i + 100000);
             ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 100000 of global memory, argument 'a', which has 256 bytes (allocation #, made by clCreateBuffer)
  64 times in this launch
""",
    ),
    "integer from memory, behind a buffer": (
        "  if (i) return;\n"
        "  *(global ulong *)b = (ulong)a; b[9] = *(constant int *)(*(volatile global ulong *)b + 256);",
        """read of 4 bytes out of bounds
  at program.cl:4:41
      *(global ulong *)b = (ulong)a; b[9] = *(constant int *)(*(volatile global ulong *)b + 256);
                                            ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 256 of constant memory, which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "write past a buffer": (
        "  b[i + 1] = a[i];",
        """write of 4 bytes out of bounds
  at program.cl:3:12
      b[i + 1] = a[i];
               ^
  by work-item (63, 0, 0), group (3, 0, 0), local id (15, 0, 0)
  at byte 256 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "read before a buffer": (
        "  b[i] = a[i - 2];",
        """read of 4 bytes out of bounds
  at program.cl:3:10
      b[i] = a[i - 2];
             ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  8 bytes before the start of global memory, argument 'a', which has 256 bytes (allocation #, made by \
clCreateBuffer)
  2 times in this launch
""",
    ),
    "read of another buffer": (
        "  if (i == 3) b[i] = a[100000];",
        """read of 4 bytes out of bounds
  at program.cl:3:22
      if (i == 3) b[i] = a[100000];
                         ^
  by work-item (3, 0, 0), group (0, 0, 0), local id (3, 0, 0)
  at byte 400000 of global memory, argument 'a', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "vector past a buffer": (
        "  if (i == 0) vstore4((int4)(1), 0, b + 61);",
        """write of 16 bytes out of bounds
  at program.cl:3:15
      if (i == 0) vstore4((int4)(1), 0, b + 61);
                  ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 244 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "write past a local argument": (
        "  t[l * 2] = i;",
        """write of 4 bytes out of bounds
  at program.cl:3:12
      t[l * 2] = i;
               ^
  by work-item (8, 0, 0), group (0, 0, 0), local id (8, 0, 0)
  at byte 64 of local memory, argument 't', which has 64 bytes
  32 times in this launch
""",
    ),
    "write past a local variable": (
        "  local int u[16], v[16]; u[l] = v[l] = i; if (l == 4) u[l + 13] = 1;",
        """write of 4 bytes out of bounds
  at program.cl:3:66
      local int u[16], v[16]; u[l] = v[l] = i; if (l == 4) u[l + 13] = 1;
                                                                     ^
  by work-item (4, 0, 0), group (0, 0, 0), local id (4, 0, 0)
  at byte 68 of local memory, variable 'k.u', which has 64 bytes
  4 times in this launch
""",
    ),
    "atomic past a buffer": (
        "  if (i == 9) atomic_inc(b + n);",
        """atomic of 4 bytes out of bounds
  at program.cl:3:15
      if (i == 9) atomic_inc(b + n);
                  ^
  by work-item (9, 0, 0), group (0, 0, 0), local id (9, 0, 0)
  at byte 256 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "null pointer": (
        "  global int *p = n == 64 ? 0 : b; if (i == 2) *p = 3;",
        """write of 4 bytes by way of a null pointer
  at program.cl:3:51
      global int *p = n == 64 ? 0 : b; if (i == 2) *p = 3;
                                                      ^
  by work-item (2, 0, 0), group (0, 0, 0), local id (2, 0, 0)
""",
    ),
    "null pointer with an index": (
        "  global int *p = n == 64 ? 0 : b; if (i == 2) p[70000] = 3;",
        """write of 4 bytes by way of a null pointer
  at program.cl:3:57
      global int *p = n == 64 ? 0 : b; if (i == 2) p[70000] = 3;
                                                            ^
  by work-item (2, 0, 0), group (0, 0, 0), local id (2, 0, 0)
""",
    ),
    "nobody has written the buffer": (
        "  a[i] = b[i / 64 + 5];",
        """read of 4 bytes that nobody has written
  at program.cl:3:10
      a[i] = b[i / 64 + 5];
             ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 20 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "nobody has written local memory": (
        "  if (l < 15) t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[l];",
        """read of 4 bytes that nobody has written
  at program.cl:3:62
      if (l < 15) t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[l];
                                                                 ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  at byte 60 of local memory, argument 't', which has 64 bytes
  4 times in this launch
""",
    ),
    "read past a private array": (
        "  int x[4] = {1, 2, 3, 4}; b[i] = x[i / 8];",
        """read of 4 bytes out of bounds
  at program.cl:3:35
      int x[4] = {1, 2, 3, 4}; b[i] = x[i / 8];
                                      ^
  by work-item (32, 0, 0), group (2, 0, 0), local id (0, 0, 0)
  at byte 16 of private memory, variable 'x', which has 16 bytes
  32 times in this launch
""",
    ),
    "nobody has written a private array": (
        "  int x[4]; x[i & 1] = 3; b[i] = x[i & 3];",
        """read of 4 bytes that nobody has written
  at program.cl:3:34
      int x[4]; x[i & 1] = 3; b[i] = x[i & 3];
                                     ^
  by work-item (2, 0, 0), group (0, 0, 0), local id (2, 0, 0)
  at byte 8 of private memory, variable 'x', which has 16 bytes
  32 times in this launch
""",
    ),
    "nobody has written a private variable": (
        "  int x; if (a[i] > 60) x = 2; b[i] = x;",
        """read of 4 bytes that nobody has written
  at program.cl:3:39
      int x; if (a[i] > 60) x = 2; b[i] = x;
                                          ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 0 of private memory, variable 'x', which has 4 bytes
  61 times in this launch
""",
    ),
    "nobody has written a component": (
        "  int4 v; v.x = i; v.z = 2; b[i] = v.z + v.y;",
        """read of 4 bytes that nobody has written
  at program.cl:3:42
      int4 v; v.x = i; v.z = 2; b[i] = v.z + v.y;
                                             ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 4 of private memory, variable 'v', which has 16 bytes
  64 times in this launch
""",
    ),
    "private memory across a barrier": (
        "  int x[2]; x[0] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = x[0] + x[l / 15];",
        """read of 4 bytes that nobody has written
  at program.cl:3:67
      int x[2]; x[0] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = x[0] + x[l / 15];
                                                                      ^
  by work-item (15, 0, 0), group (0, 0, 0), local id (15, 0, 0)
  at byte 4 of private memory, variable 'x', which has 8 bytes
  4 times in this launch
""",
    ),
    "index of an array in a structure": (
        "  struct { int x[2]; int y; } s = {{1, 2}, 3}; b[i] = s.x[i == 7 ? 2 : 0];",
        """index 2 out of bounds of an array of 2
  at program.cl:3:55
      struct { int x[2]; int y; } s = {{1, 2}, 3}; b[i] = s.x[i == 7 ? 2 : 0];
                                                          ^
  by work-item (7, 0, 0), group (0, 0, 0), local id (7, 0, 0)
""",
    ),
    "copy of a group past a buffer": (
        "  event_t e = async_work_group_copy(t, a + 16 * get_group_id(0) + 1, 16, 0);\n"
        "  wait_group_events(1, &e);",
        """read of 64 bytes out of bounds
  at program.cl:3:15
      event_t e = async_work_group_copy(t, a + 16 * get_group_id(0) + 1, 16, 0);
                  ^
  by work-item (48, 0, 0), group (3, 0, 0), local id (0, 0, 0)
  at byte 196 of global memory, argument 'a', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
    "misaligned vector": (
        "  if (i == 0) *(global int4 *)(b + 2) = (int4)(1);",
        """write of 16 bytes at an address that is no multiple of 16
  at program.cl:3:39
      if (i == 0) *(global int4 *)(b + 2) = (int4)(1);
                                          ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 8 of global memory, argument 'b', which has 256 bytes (allocation #, made by clCreateBuffer)
""",
    ),
}

# The same, as they should be.
RIGHT = {
    "inside of what is chosen": "  constant int c[4] = {1, 2, 3, 4}; constant int d[8] = {5};\n"
    "  constant int *p = i & 7 ? d : c; int e[2] = {1, 2}, f[64] = {3}, *q = i & 62 ? f : e;\n"
    "  q[i] = i; b[i] = p[i & 7] + e[i & 1] + f[i];",
    "integers inside": "  b[i] = *(constant int *)(((ulong)a + 4 * i + 3) & ~3ul & ~0ul);\n"
    "  constant int c[4] = {1, 2, 3, 4}; b[i] += *(constant int *)((ulong)c + 4 * (i & 3));",
    "integers of two pointers": "  b[i] = *(constant int *)(n ? (ulong)a + 4 * i : (ulong)b);\n"
    "  if (i) return; volatile ulong to_b = (ulong)b - (ulong)a; *(global int *)((ulong)a + to_b) = 1;",
    "integer from memory": "  if (i) return;\n"
    "  *(global ulong *)b = (ulong)a; b[9] = *(constant int *)(*(volatile global ulong *)b + 4);",
    "the last element": "  b[i] = a[63 - i];",
    "vector at the end": "  if (i == 0) vstore4((int4)(1), 0, b + 60);",
    "unaligned vstore4": "  if (i == 0) vstore4((int4)(1), 0, b + 1);",
    "local argument": "  t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[15 - l];",
    "local variables": "  local int u[16], v[16]; u[l] = v[l] = i; b[i] = u[l] + v[l];",
    "atomic": "  if (i == 0) b[3] = 0; barrier(CLK_GLOBAL_MEM_FENCE); if (i < 16) atomic_inc(b + 3);",
    "pointer of two": "  global int *p = i & 1 ? a : b; p[i] = 3;",
    "bytes": "  global char *p = (global char *)b; p[i] = i; p[i + 64] = p[i];",
    "three components": "  int3 v = vload3(i / 4, a); if (i < 21) vstore3(v, i, b);",
    "structure": "  struct { int x; char y; } s = {a[i], 1}; b[i] = s.x + s.y;",
    "components of a vector": "  int4 v; v.x = i; v.yzw = (int3)(1, 2, 3); v.y += 4; b[i] = v.y + v.w;",
    "vector of three": "  int3 v; v.x = i; v.y = 1; v.z = 2; int3 w = v; b[i] = w.x + w.y + w.z;",
    "private arrays": "  int x[8]; for (int k = 0; k < 8; k++) x[k] = i + k; b[i] = x[l / 2];",
    "copied structure": (
        "  struct s { int x[3]; char c; } s = {{1, 2, 3}, 4}, u; u = s; b[i] = u.x[i % 3] + u.c;"
    ),
    "results through pointers": (
        "  int e; float c, f = frexp((float)a[i], &e) + sincos((float)i, &c); b[i] = f + e + c;"
    ),
    "loop": "  int x; for (int k = 0; k < 3; k++) { if (k) b[i] = x; x = k; }",
    "atomic store to what nobody has written": (
        "  atomic_store_explicit((global atomic_int *)b + i, i, memory_order_relaxed, memory_scope_device);\n"
        "  b[i] += 1;"
    ),
    "read of what was written before": "  b[i] = a[i]; b[i] += 1;",
}


found, test_report, test_no_report = kernel_tests(WRONG, RIGHT)


def test_what_is_remembered_of_buffers_goes_with_them(reports):
    """Of one buffer there are up to six times its size; of freed ones, 256 MiB are held back, and no more."""
    found = reports([("one", 1), ("many", 40)], "many_buffers")
    assert int(found["many"]) < int(found["one"]) + 256 + 2 * 6 * 8
