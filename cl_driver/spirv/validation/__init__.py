"""Refuses modules that break the rules that later stages rely on."""
