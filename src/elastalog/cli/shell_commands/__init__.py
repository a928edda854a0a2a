"""The commands of the shell. A new one is a `Command` in the table of a module here; `registry.COMMANDS` has them
all."""
