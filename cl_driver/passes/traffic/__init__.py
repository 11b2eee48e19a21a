"""What a launch reads, writes and calculates, as a function of its sizes and arguments."""
