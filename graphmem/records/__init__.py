"""What was noted and what happened: notes, sessions and their parts."""
