"""Names of earlier versions, all in the tables here. They work until the next release, with a warning that gives the
new name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

Called = TypeVar("Called", bound=Callable[..., Any])

MEMBERS: Final = {
    "explain_absence": "why_not",
    "turns": "history",
    **{
        name: f"engine.{name}"
        for name in (
            "added_declarations", "announce", "asking", "changed_rules", "changes_of", "commit", "encode", "epoch_at",
            "exclusively", "fact", "follow", "is_applied", "reading", "recovery", "store", "twin", "within",
        )
    },
}  # fmt: skip
"""Members of a session or a client that were renamed, or moved to `engine`."""

INSTEAD: Final = {
    "insert": ": write `db.apply({relation: rows})`, or `insert` of an update, `with db.update() as update:`",
    "delete": ": write `db.apply(deleted={relation: rows})`, or `delete` of an update, `with db.update() as update:`",
    "undo": ": `db.apply(undo=db.epoch)` takes back the latest epoch, a number another one; `preview` shows it",
    "columns": ": `relation.schema.names` has the names",
    "to_list": ": write `list(relation)`",
    "to_dicts": ": write `relation.to_arrow().to_pylist()`",
    **{kind: f": write `relation.to_{kind}()`" for kind in ("arrow", "pandas", "polars")},
    "to_csv": ": write `pyarrow.csv.write_csv(relation.to_arrow(), path)`, after `import pyarrow.csv`",
    "inserted": ": by relation: `changes[name].inserted`, of all together `changes.to_pandas()`",
    "deleted": ": by relation: `changes[name].deleted`, of all together `changes.to_pandas()`",
    "where": ': write `relation.filter(lambda x, y: x < y)`, or a query, `db.query("path(1, X)")`',
    **dict.fromkeys(("why", "prove"), ": `db.explain(fact)` says why it holds, `db.why_not(fact)` why it does not"),
    "whynot": ": write `db.why_not(fact)`",
    **dict.fromkeys(("get", "facts"), ': write `db["path"]`; `db.schemas` has all relations'),
    **dict.fromkeys(("first", "limit", "take"), ": `relation.sort().head(3)` is a list of the first three"),
    **dict.fromkeys(("count", "size"), ": write `len(relation)`"),
    **dict.fromkeys(("df", "to_df"), ": write `relation.to_pandas()`, or `relation.to_polars()`"),
    **dict.fromkeys(("add_rule", "add_rules"), ': write `db.change_rules("path(x, x) :- edge(x, _).")`'),
    **dict.fromkeys(("run", "execute", "ask"), ': everything is evaluated when it is asked: `db.query("path(1, X)")`'),
    **dict.fromkeys(("save", "persist"), ": a session opened with `store=PATH` keeps every epoch there"),
    "relations": ": `db.schemas` has them by name, and `db[name]` is one",
}
"""What to write instead of members that never existed but that users expect."""

ONLY_OF_SESSIONS: Final = {
    "on_commit": ": `for event in db.listen():` tells of every epoch",
    "engine": ": the process that runs the service has it; `db.apply(undo=3)` undoes an epoch",
    "refresh": ": a client shows the latest epoch whenever it is asked",
    "proofs": ": `db.explain(fact)` gives the best proof, `db.derivations(fact)` every derivation",
    "backup": ": copy the store where the service runs, by `elastalog backup STORE FOLDER`",
    **dict.fromkeys(("reports", "sparql", "statistics", "verify"), ": the process that runs the service has it"),
}
"""What to do instead where a client lacks a member of a session."""

OPTIONS: Final = {
    "memory": "limits.memory",
    "timeout": "limits.time",
    "device_memory": "limits.device_memory",
    "max_expansion": "limits.expansion",
    "max_bad_rows": "bad_rows.most",
    "quarantine": "bad_rows.folder",
    "read_only": "store.read_only",
    "at": "store.at",
    "retention": "store.retention",
    "heartbeats": "store.heartbeats",
    "include": "program.include",
    "macros": "program.macros",
    "arithmetic": "program.arithmetic",
}
"""Options of `elastalog.open` and `elastalog.query` that have become fields of another option."""

_WRITTEN: Final = {
    "limits": "limits=elastalog.Limits({}=…)",
    "bad_rows": "bad_rows=elastalog.BadRows(…, {}=…)",
    "store": "store=elastalog.Store(…, {}=…)",
    "program": "elastalog.Program.load(…, {}=…)",
}


def warn(told: str, depth: int = 3) -> None:
    """Warns of an earlier name, at the line of the caller."""
    warnings.warn(f"{told}; the earlier name will go with the next release", DeprecationWarning, stacklevel=depth)


class Renamed:
    """Provides members under their earlier names, and says what to write `_instead` of others."""

    _instead: ClassVar[Mapping[str, str]] = INSTEAD

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            now = MEMBERS.get(name)
            if now is not None and hasattr(type(self), now.partition(".")[0]):
                found = attrgetter(now)(self)
                warn(f"`{name}` is now `{now}`")
                return found
            if name == "aapply" and hasattr(type(self), "engine"):
                import asyncio
                from functools import partial

                warn("write `asyncio.to_thread(db.apply, …)` instead of `db.aapply(…)`")
                return partial(asyncio.to_thread, self.apply)
            called = next(one.__name__ for one in type(self).__mro__ if Renamed in one.__bases__)
            told = f"{called!r} object has no attribute {name!r}"
            is_relation = name[:1] != "_" and name != "schemas" and name in getattr(self, "schemas", ())
            kept_in = "changes" if isinstance(self, Mapping) else "db"
            asked = name if now is None else now.partition(".")[0]
            instead = f': write `{kept_in}["{name}"]`' if is_relation else self._instead.get(asked, "")
            schema = None if name == "schema" else getattr(self, "schema", None)
            if name in getattr(schema, "names", ()):
                place = schema.names.index(name)
                instead = f": that is a column: write `[fact[{place}] for fact in relation]`"
            raise AttributeError(told + instead, name=name, obj=self)


def takes_key(method: Called) -> Called:
    """A decorator for methods of a client: `key` is accepted for `batch`."""

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        if "key" in options:
            warn("`key=…` is now `batch=…`")
            options["batch"] = options.pop("key")
        return method(*arguments, **options)

    return call  # type: ignore[return-value]


def takes_old_options(**groups: Callable[..., Any]) -> Callable[[Called], Called]:
    """A decorator for functions whose options had other names. `groups` makes the value of an option from the fields
    that were given separately, and the program as well."""

    def decorate(function: Called) -> Called:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            old = [name for name in options if name in OPTIONS]
            if not old:
                return function(*arguments, **options)
            fields: dict[str, dict[str, Any]] = {}
            for name in old:
                group, _, field = OPTIONS[name].partition(".")
                fields.setdefault(group, {})[field] = options.pop(name)
                warn(f"`{name}=…` is now `{_WRITTEN[group].format(field)}`")
            of_program = fields.pop("program", None)
            if of_program is not None:
                program, arguments = (arguments[0], arguments[1:]) if arguments else (options.pop("program"), ())
                arguments = (groups["program"](program, **of_program), *arguments)
            for group, given in fields.items():
                options[group] = replace(groups[group](options.get(group)), **given)
            return function(*arguments, **options)

        return call  # type: ignore[return-value]

    return decorate
