"""What is found out of functions without changing them: shapes, strides, locks, memory order."""
