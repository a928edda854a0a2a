"""Stand-ins for the functions that programs bring in C++ of their own: simple ones, the same for both sides."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from elastalog.analysis.program import Base, CheckedProgram, UserFunctor

PYTHON, NAME = "functors.py", "standins"

_TYPES = {Base.NUMBER: "int32_t", Base.UNSIGNED: "uint32_t", Base.FLOAT: "float", Base.SYMBOL: "const char*"}
_HEAD = "#include <cstring>\n#include <string>\n#include <souffle/SouffleFunctor.h>\n"
_KINDS = 17


def own_functors(checked: CheckedProgram) -> list[UserFunctor]:
    """Those that its rules apply."""
    rules = repr(checked.rules)
    return [functor for name, functor in checked.functors.items() if f"'@{name}'" in rules]


def headers_of(souffle: str | None) -> Path | None:
    """Where the headers of a Soufflé lie that was built, or installed."""
    above = Path(souffle or "").resolve().parents
    folders = [above[2] / "src" / "include", above[1] / "include"] if len(above) > 2 else []
    return next((folder for folder in folders if (folder / "souffle" / "SouffleFunctor.h").is_file()), None)


def write(functors: Iterable[UserFunctor], folder: Path, headers: Path | None) -> None:
    """Functions in Python, and a library in C++ if there are headers. A number is made of all arguments and small; a
    text is the first that is given, or made of the number; a record is the first that is given of its type, or nil."""
    functors = list(functors)
    (folder / PYTHON).write_text("\n".join(map(_in_python, functors)))
    if headers is not None:
        source = folder / f"{NAME}.cpp"
        source.write_text(_HEAD + 'extern "C" {\n' + "\n".join(map(_in_cpp, functors)) + "\n}\n")
        library = folder / f"lib{NAME}.so"
        command = ["c++", "-std=c++17", "-shared", "-fPIC", f"-I{headers}", "-o", str(library), str(source)]
        subprocess.run(command, check=True, capture_output=True)


def _given(functor: UserFunctor) -> int | None:
    """The argument that is the result."""
    if functor.result is Base.SYMBOL:
        return next((i for i, base in enumerate(functor.parameters) if base is Base.SYMBOL), None)
    if functor.result is Base.RECORD:
        return next((i for i, name in enumerate(functor.parameter_types) if name == functor.result_type), None)
    return None


def _in_python(functor: UserFunctor) -> str:
    terms = {Base.NUMBER: "a{}", Base.UNSIGNED: "a{}", Base.SYMBOL: "len(a{}.encode())"}
    parts = [terms[base].format(i) for i, base in enumerate(functor.parameters) if base in terms]
    number = f"({' + '.join(parts) or '0'}) % {_KINDS}"
    given = _given(functor)
    results = {Base.FLOAT: f"float({number})", Base.SYMBOL: f'"v" + str({number})', Base.RECORD: "None"}
    result = results.get(functor.result, number) if given is None else f"a{given}"
    return f"def {functor.name}({', '.join(f'a{i}' for i in range(len(functor.parameters)))}): return {result}"


def _in_cpp(functor: UserFunctor) -> str:
    state = "souffle::SymbolTable* texts, souffle::RecordTable* records"
    stateful = functor.is_stateful
    types = ["souffle::RamDomain" if stateful else _TYPES[base] for base in (*functor.parameters, functor.result)]
    listed = [*([state] if stateful else []), *(f"{kind} a{i}" for i, kind in enumerate(types[:-1]))]
    text = "(long)texts->decode(a{}).size()" if stateful else "(long)strlen(a{})"
    terms = {Base.NUMBER: "(long)a{}", Base.UNSIGNED: "(long)(uint32_t)a{}", Base.SYMBOL: text}
    parts = [terms[base].format(i) for i, base in enumerate(functor.parameters) if base in terms]
    number = f"((({' + '.join(parts) or '0L'}) % {_KINDS} + {_KINDS}) % {_KINDS})"
    given = _given(functor)
    made = f'std::string("v") + std::to_string({number})'
    if given is not None:
        body = f"return a{given};"
    elif functor.result is Base.SYMBOL:
        body = f"return texts->encode({made});" if stateful else f"static std::string s; s = {made}; return s.c_str();"
    elif functor.result is Base.RECORD:
        body = "return 0;"
    elif functor.result is Base.FLOAT and stateful:
        body = f"return souffle::ramBitCast((souffle::RamFloat){number});"
    else:
        body = f"return {number};"
    return f"{types[-1]} {functor.name}({', '.join(listed)}) {{ {body} }}"
