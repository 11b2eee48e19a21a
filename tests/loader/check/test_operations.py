"""Divisions and conversions without a result: the whole report of each."""

from __future__ import annotations

from tests.loader.check.kernels import kernel_tests

# name: (the kernel's body behind IDS, what is told of it).
WRONG = {
    "division by zero": (
        "  b[i] = 100 / (a[i] - 5);",
        """division by zero: 100 / 0
  at program.cl:3:14
      b[i] = 100 / (a[i] - 5);
                 ^
  by work-item (5, 0, 0), group (0, 0, 0), local id (5, 0, 0)
""",
    ),
    "remainder by zero": (
        "  b[i] = (uint)a[i] % (uint)(a[i] & 3);",
        """division by zero: 0 % 0
  at program.cl:3:21
      b[i] = (uint)a[i] % (uint)(a[i] & 3);
                        ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  16 times in this launch
""",
    ),
    "the least integer by -1": (
        "  b[i] = (INT_MIN + a[i]) / (a[i] - 1);",
        """division that overflows: -2147483648 / -1
  at program.cl:3:27
      b[i] = (INT_MIN + a[i]) / (a[i] - 1);
                              ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  2 times in this launch
""",
    ),
    "remainder of the least long": (
        "  long d = a[i] - 7; b[i] = (LONG_MIN + a[i] - 6) % d;",
        """division that overflows: -9223372036854775808 % -1
  at program.cl:3:51
      long d = a[i] - 7; b[i] = (LONG_MIN + a[i] - 6) % d;
                                                      ^
  by work-item (6, 0, 0), group (0, 0, 0), local id (6, 0, 0)
  2 times in this launch
""",
    ),
    "a short": (
        "  short s = a[i] - 2; ushort u = s; b[i] = (ushort)3 / (u ? 1 : u);",
        """division by zero: 3 / 0
  at program.cl:3:54
      short s = a[i] - 2; ushort u = s; b[i] = (ushort)3 / (u ? 1 : u);
                                                         ^
  by work-item (2, 0, 0), group (0, 0, 0), local id (2, 0, 0)
""",
    ),
    "a component of a vector": (
        "  long4 v = convert_long4(vload4(i / 4, a)); v = 10 % v; b[i] = v.y;",
        """division by zero: 10 % 0
  at program.cl:3:53
      long4 v = convert_long4(vload4(i / 4, a)); v = 10 % v; b[i] = v.y;
                                                        ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  4 times in this launch
""",
    ),
    "chosen all the same": (
        "  int r = 100 / a[i]; b[i] = i < 8 ? r : 0;",
        """division by zero: 100 / 0
  at program.cl:3:15
      int r = 100 / a[i]; b[i] = i < 8 ? r : 0;
                  ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
""",
    ),
    "float to int": (
        "  b[i] = (int)(a[i] * 1e8f);",
        """conversion of 2.2e+09 to int, which cannot hold it
  at program.cl:3:10
      b[i] = (int)(a[i] * 1e8f);
             ^
  by work-item (22, 0, 0), group (1, 0, 0), local id (6, 0, 0)
  42 times in this launch
""",
    ),
    "float to uchar": (
        "  b[i] = convert_uchar(a[i] - 2.0f);",
        """conversion of -2 to uchar, which cannot hold it
  at program.cl:3:10
      b[i] = convert_uchar(a[i] - 2.0f);
             ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  2 times in this launch
""",
    ),
    "double to long": (
        "  b[i] = (long)(a[i] * 0x1p62);",
        """conversion of 9.22337204e+18 to long, which cannot hold it
  at program.cl:3:10
      b[i] = (long)(a[i] * 0x1p62);
             ^
  by work-item (2, 0, 0), group (0, 0, 0), local id (2, 0, 0)
  62 times in this launch
""",
    ),
    "not a number": (
        "  b[i] = (char)(a[i] / 0.0f);",
        """conversion of nan to char, which cannot hold it
  at program.cl:3:10
      b[i] = (char)(a[i] / 0.0f);
             ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  64 times in this launch
""",
    ),
    "rounded up": (
        "  b[i] = convert_uchar_rte(a[i] + 200.5f);",
        """conversion of 255.5 to uchar, which cannot hold it
  at program.cl:3:10
      b[i] = convert_uchar_rte(a[i] + 200.5f);
             ^
  by work-item (55, 0, 0), group (3, 0, 0), local id (7, 0, 0)
  9 times in this launch
""",
    ),
    "half to char": (
        "  half h = a[i] * 10; b[i] = (char)h;",
        """conversion of 130 to char, which cannot hold it
  at program.cl:3:30
      half h = a[i] * 10; b[i] = (char)h;
                                 ^
  by work-item (13, 0, 0), group (0, 0, 0), local id (13, 0, 0)
  51 times in this launch
""",
    ),
    "float4 to short4": (
        ("  float4 v = convert_float4(vload4(i / 4, a)) * 600;\n  b[i] = convert_short4(v).w;"),
        """conversion of 33000 to short, which cannot hold it
  at program.cl:4:10
      b[i] = convert_short4(v).w;
             ^
  by work-item (52, 0, 0), group (3, 0, 0), local id (4, 0, 0)
  36 times in this launch
""",
    ),
    "taken by a branch, later": (
        "  int r = 100 / (a[i] - 3); b[i] = a[i] == 3 ? 0 : r;",
        """division by zero: 100 / 0
  at program.cl:3:15
      int r = 100 / (a[i] - 3); b[i] = a[i] == 3 ? 0 : r;
                  ^
  by work-item (3, 0, 0), group (0, 0, 0), local id (3, 0, 0)
""",
    ),
}

# The same, as they should be.
RIGHT = {
    "shift by more than there are bits": (
        "  b[i] = (a[i] << (a[i] + 40)) + (a[i] >> -i) + (int)((ulong)a[i] << i);"
    ),
    "looked at before": "  b[i] = a[i] ? 100 / a[i] : 0; if (a[i]) b[i] += 7 % a[i];",
    "ternary operator of vectors": "  int4 v = vload4(i / 4, a), q = v != 0 ? 100 / v : 0; b[i] = q.x;",
    "select": (
        "  int4 v = vload4(i / 4, a);\n"
        "  b[i] = select(100 / v, 1, v == 0).x + select(9 / a[i], 1, a[i] == 0);"
    ),
    "by constants": "  b[i] = a[i] / -1 + a[i] % 7 + (a[i] - 2) / 3u;",
    "saturated": (
        "  b[i] = convert_uchar_sat(a[i] * 100.0f - 5) + convert_int_sat(NAN);\n"
        "  b[i] += convert_char_sat_rte(1e9f);"
    ),
    "fractions": (
        "  b[i] = (uchar)(a[i] / 64.0f + 254.99f) + (uint)(a[i] * -0.01f);\n"
        "  b[i] += convert_uchar_rte(255.4f);"
    ),
    "the largest": (
        "  b[i] = (int)(a[i] + 2147483520.0f - a[i]) + (int)-0x1p31f;\n"
        "  b[i] += (long)-0x1p63 + convert_char_rtn(127.9f);"
    ),
}


found, test_report, test_no_report = kernel_tests(WRONG, RIGHT)
