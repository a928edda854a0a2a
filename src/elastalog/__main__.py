"""The command, also as `python -m elastalog`. Until it is at work, Ctrl-C ends the process without a word."""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of: nothing is loaded before this is done

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    from elastalog.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
