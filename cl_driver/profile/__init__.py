"""Profiles of programs as pages for people. README.md has the parts."""
