"""What became of a program: reports for people. README.md has the parts."""
