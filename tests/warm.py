"""Commands and scripts run by a process that has imported already what they would: to start Python and import it anew
takes longer than most of what they do. The process forks for each, so that none sees another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_SERVER = """
import json, os, runpy, signal, socket, sys
import elastalog, elastalog.cli.main

elastalog.open(".decl a, b(x: number)\\n.input a\\nb(x) :- a(x).", {"a": [(1,)]}).close()


def run(asked):
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = asked["command"]
    if sys.argv[0] == "elastalog":
        elastalog.cli.main.main()
    elif sys.argv[1] == "-c":
        sys.path.insert(0, "")
        exec(compile(sys.argv[2], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
print("ready", flush=True)
while True:
    connection, _ = listening.accept()
    if os.fork():
        connection.close()
        continue
    listening.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
    connection.send(f"{os.getpid()}\\n".encode())
    code = 1
    try:
        run(json.loads(message))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.send(f"{code}\\n".encode())
        os._exit(code)
"""

_CLIENT = """
import json, os, signal, socket, sys

asked = {"folder": os.getcwd(), "environment": dict(os.environ), "command": sys.argv[2:]}
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
socket.send_fds(connection, [json.dumps(asked).encode()], [0, 1, 2])
told = connection.makefile()
process = int(told.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(process, number))
sys.exit(int(told.readline() or 70))
"""


@contextmanager
def programs(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """A folder with the programs `elastalog` and `python`, of which the latter runs files and `-c`."""
    made, address = folder / "bin", folder / "socket"
    made.mkdir()
    (folder / "client.py").write_text(_CLIENT, encoding="utf-8")
    for name in ("elastalog", "python"):
        script = f'#!/bin/sh\nexec "{sys.executable}" -I -S "{folder}/client.py" "{address}" {name} "$@"\n'
        (made / name).write_text(script, encoding="utf-8")
        (made / name).chmod(0o755)
    command = [sys.executable, "-c", _SERVER, str(address)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield made
        finally:
            server.kill()
