"""The compile service: cache first, then compiler processes and what they do."""
