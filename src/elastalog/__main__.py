"""The command, also as `python -m elastalog`. Until it is at work, Ctrl-C ends the process without a word."""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of: nothing is loaded before this is done

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    from elastalog.cli.main import main as command

    try:
        command()
    finally:
        # An exception of Ctrl-C that leaves a text which `exec` runs, as dataclasses do, is noted by Python, and a
        # process that `-m` has begun would end by the signal, whatever became of the exception. This takes it back.
        exec("")


if __name__ == "__main__":
    main()
