#!/bin/sh
# Print the newest Python from 3.11 on that can make virtual environments. Each candidate is run, since a command of that
# name may be a shim for a version that is not installed.
for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        echo "$candidate"
        exit 0
    fi
done
echo "no Python from 3.11 on with the venv module was found; install one (on Debian: python3 and python3-venv)" >&2
exit 1
