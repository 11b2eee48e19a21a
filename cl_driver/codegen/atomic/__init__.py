"""Atomics of several lanes or work-items as one."""
