"""What is known: functions that take an open transaction."""
