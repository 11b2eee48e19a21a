"""Traces of programs: reading them, and the page that shows one."""
