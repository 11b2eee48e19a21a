"""What this CPU is, and every limit that follows. See README.md. Imports the standard library only."""
