"""The generic address space (OpenCL C 6.7.5, 6.15.10): what a pointer leads to is known when it is used."""

import numpy as np

from .session import Local


def test_functions_take_pointers_to_any_space(session):
    source = """
        int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
        void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }
        kernel void k(global int *out, global int *in, local int *shared) {
          int own[4], i = get_global_id(0), l = get_local_id(0) * 4;
          for (int n = 0; n < 4; n++) { own[n] = in[4 * i + n] * 2; shared[l + n] = own[n] + 1; }
          swap(own, shared + l); swap(in + 4 * i, own + 1); swap(shared + l + 2, in + 4 * i + 3);
          out[3 * i] = sum(own, 4); out[3 * i + 1] = sum(shared + l, 4); out[3 * i + 2] = sum(in + 4 * i, 4);
        }"""
    data = np.arange(256, dtype=np.int32)
    own = data.reshape(-1, 4) * 2
    shared, given = own + 1, data.reshape(-1, 4).copy()
    own[:, 0], shared[:, 0] = shared[:, 0].copy(), own[:, 0].copy()
    given[:, 0], own[:, 1] = own[:, 1].copy(), given[:, 0].copy()
    shared[:, 2], given[:, 3] = given[:, 3].copy(), shared[:, 2].copy()
    found = session.compute(source, 64, np.int32, 192, session.buffer(data), Local(256), local=16)
    assert np.array_equal(found.reshape(-1, 3).T, [x.sum(axis=1) for x in (own, shared, given)])


def test_pointers_are_chosen_at_run_time(session):
    """Each work-item reads and writes through a pointer to another space; loops carry such pointers."""
    source = """
        constant int unused = 0; global int table[4] = {5, 6, 7, 8};
        kernel void k(global int *out, local int *shared) {
          int own[4] = {40, 41, 42, 43}, i = get_global_id(0), l = get_local_id(0);
          for (int n = 0; n < 4; n++) shared[4 * l + n] = 100 + n;
          int *p = own;
          if (i % 3 == 1) p = shared + 4 * l;
          if (i % 3 == 2) p = table;
          int s = 0;
          for (int n = 0; n < 4; n++, p++) { s += *p; if (i % 3 < 2) *p += i; }
          out[i] = s + (i % 3 == 0 ? own[3] : shared[4 * l + 1]) * 1000;
        }"""
    found = session.compute(source, 60, np.int32, 60, Local(160), local=10)
    i = np.arange(60)
    expected = np.choose(i % 3, [166 + 1000 * (43 + i), 406 + 1000 * (101 + i), 26 + 101000 + 0 * i])
    assert np.array_equal(found, expected)


def test_spaces_are_told_apart(session):
    """to_global, to_local and to_private give the pointer or NULL, get_fence the fence of a space."""
    source = """
        uint kind(int *p) {
          return (to_global(p) == p) | (to_local(p) == p) << 1 | (to_private(p) == p) << 2
                 | (to_global(p) != NULL) << 3 | (to_local(p) != NULL) << 4 | (to_private(p) != NULL) << 5
                 | (get_fence(p) == CLK_GLOBAL_MEM_FENCE) << 6 | (get_fence(p) == CLK_LOCAL_MEM_FENCE) << 7;
        }
        kernel void k(global uint *out, local int *shared) {
          int own = 1; local int other;
          out[0] = kind((int *)out); out[1] = kind(shared); out[2] = kind(&other); out[3] = kind(&own);
        }"""
    found = session.compute(source, 1, np.uint32, 4, Local(16))
    assert [int(x) & 0x3F for x in found] == [0b001001, 0b010010, 0b010010, 0b100100]
    assert [int(x) >> 6 for x in found[:3]] == [1, 2, 2]


def test_generic_pointers_in_structures_and_atomics(session):
    source = """
        typedef struct node { struct node *next; atomic_int *count; } node;
        void visit(node *n) {
          for (; n; n = n->next)
            atomic_fetch_add_explicit(n->count, 1, memory_order_relaxed, memory_scope_device);
        }
        kernel void k(global atomic_int *sums) {
          local atomic_int here;
          if (get_local_id(0) == 0) atomic_init(&here, 0);
          work_group_barrier(CLK_LOCAL_MEM_FENCE);
          node last = {NULL, (atomic_int *)&here}, first = {&last, (atomic_int *)sums};
          visit(&first);
          work_group_barrier(CLK_LOCAL_MEM_FENCE);
          if (get_local_id(0) == 0) atomic_store(sums + 1 + get_group_id(0), atomic_load(&here));
        }"""
    found = session.compute(source, 96, np.int32, 4, local=32)
    assert list(found) == [96, 32, 32, 32]
