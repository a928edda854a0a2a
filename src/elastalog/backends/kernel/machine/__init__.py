"""Rules over few rows and many rounds, run in compiled code."""
