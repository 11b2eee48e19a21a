"""How a program was compiled: reports for people. README.md has the parts."""
