"""What an editor asks about a program that is being written: pure functions over a `reading.Reading` of it."""
