"""The command, also as `python -m elastalog`. Until it is loaded, Ctrl-C ends the process without a word."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    from elastalog.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
