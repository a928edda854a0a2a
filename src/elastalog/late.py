"""Work put off until it is needed, so that a command pays only for what it uses.

The standard library writes and compiles six methods for every dataclass when its module is imported: 0.7 ms a class,
most of which a small program never makes an instance of. `dataclass` here is the same decorator, whose methods are
written when the first instance is made, or when somebody asks for the fields. `module` is for those that take long to
import and are seldom used, `function` for what is called by name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    import inspect
    from threading import RLock
    from types import MemberDescriptorType

    _lock = RLock()  # a base may have to be completed for a class
    _OF_EVERY_CLASS = ("__dict__", "__weakref__")

    def dataclass(*, frozen=False, slots, eq=True, repr=True):  # noqa: A002  # as the standard library names them
        """`dataclasses.dataclass` for a class with slots."""
        assert slots, "a dataclass without slots would keep its defaults in the class"

        def decorate(cls):
            if "__init__" in cls.__dict__:
                return dataclasses.dataclass(frozen=frozen, slots=True, eq=eq, repr=repr)(cls)
            return _Incomplete(cls, {"frozen": frozen, "eq": eq, "repr": repr}).made

        return decorate

    class _Incomplete:
        """Stands for the fields of a class until they are asked for; completes the class then.

        `written` is the class as it was written, with the defaults of its fields; `made` is the same with slots, where
        defaults cannot be. The standard library completes the former, and the latter takes its methods over."""

        def __init__(self, written, options):
            self.written = written
            self.options = options
            self.made = self._with_slots()

        def _with_slots(self):
            written = self.written
            names = [name for name, kind in inspect.get_annotations(written).items() if _is_field(kind)]
            content = {name: value for name, value in vars(written).items() if name not in names}
            for name in _OF_EVERY_CLASS:
                content.pop(name, None)
            inherited = (vars(base).get(name) for base in written.__mro__[1:] for name in names)
            taken = {found.__name__ for found in inherited if isinstance(found, MemberDescriptorType)}
            content["__slots__"] = tuple(name for name in names if name not in taken)
            content["__dataclass_fields__"] = self
            content["__init__"] = self._first_init()
            if self.options["frozen"]:  # without them, an instance could not be set up again by pickle
                content.setdefault("__getstate__", _state)
                content.setdefault("__setstate__", _set_state)
            made = type(written)(written.__name__, written.__bases__, content)
            made.__qualname__ = written.__qualname__
            return made

        def _first_init(self):
            def __init__(instance, *arguments, **named):  # noqa: N807
                self.complete()
                self.made.__init__(instance, *arguments, **named)

            return __init__

        def __get__(self, instance, owner):
            self.complete()
            return self.made.__dataclass_fields__

        def complete(self):
            with _lock:
                if vars(self.made)["__dataclass_fields__"] is not self:
                    return
                # Ctrl-C may come at any instant, and then all this is done again: so the standard library works on a
                # draft, and the class is taken for complete only when everything else of it is in place.
                found = self._methods()
                if self.options["frozen"]:
                    found["__init__"] = _quick_init(self.made, found) or found["__init__"]
                last = {name: found.pop(name) for name in ("__init__", "__dataclass_fields__")}
                for name, value in (found | last).items():
                    setattr(self.made, name, value)

        def _methods(self):
            """What the standard library adds to the class, by name."""
            content = {name: value for name, value in vars(self.written).items() if name not in _OF_EVERY_CLASS}
            content["__doc__"] = content.get("__doc__") or "none"  # or one is made of the signature, at great length
            draft = type(self.written)(self.written.__name__, self.written.__bases__, content)
            before = dict(vars(draft))
            dataclasses.dataclass(**self.options)(draft)
            return {
                name: value
                for name, value in vars(draft).items()
                if name.startswith("__") and name != "__doc__" and before.get(name, draft) is not value
            }

    def _quick_init(made, found):
        """An `__init__` of a frozen class that fills its slots directly, in half the time that it takes to go around
        the `__setattr__` that refuses. None where it has to do more than that."""
        everything = found["__dataclass_fields__"].values()
        fields = [field for field in everything if field._field_type is not dataclasses._FIELD_CLASSVAR]
        is_plain = all(field._field_type is dataclasses._FIELD and field.init and not field.kw_only for field in fields)
        slots = {f"_set_{field.name}": getattr(made, field.name, None) for field in fields}
        if not is_plain or hasattr(made, "__post_init__"):
            return None
        if not all(isinstance(slot, MemberDescriptorType) for slot in slots.values()):
            return None
        scope = {name: slot.__set__ for name, slot in slots.items()}
        scope["_MADE"] = dataclasses._HAS_DEFAULT_FACTORY
        body = "\n    pass"
        for field in fields:
            if field.default_factory is not dataclasses.MISSING:
                scope[f"_make_{field.name}"] = field.default_factory
                body += f"\n    if {field.name} is _MADE: {field.name} = _make_{field.name}()"
            body += f"\n    _set_{field.name}(self, {field.name})"
        exec(f"def __init__({', '.join(['self', *(field.name for field in fields)])}):{body}", scope)
        init, usual = scope["__init__"], found["__init__"]
        init.__defaults__, init.__annotations__ = usual.__defaults__, usual.__annotations__
        init.__qualname__ = usual.__qualname__
        return init

    def _is_field(kind):
        """Whether an annotation, a text, makes a field."""
        return not kind.startswith(("ClassVar", "typing.ClassVar"))

    def _state(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _set_state(self, state):
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)


class _Module:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # from now on it is found as quickly as in the module
        return value


def module(name: str) -> Any:
    """A module that is imported when something of it is first used."""
    return _Module(name)


def function(home: str) -> Callable[..., Any]:
    """What is called by `module:name`, imported when it is called."""
    module, _, name = home.partition(":")

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call


__all__ = ["dataclass", "function", "module"]
