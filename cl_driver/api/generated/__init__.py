"""Files that programs wrote; see make_enums.py."""
