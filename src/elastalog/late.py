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
    _WRITTEN_LATER = ("__repr__", "__eq__", "__hash__", "__dataclass_params__")

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
            """From now on there can be instances. What only some classes need, comparing and showing, may still have
            to be written."""
            with _lock:
                if vars(self.made)["__dataclass_fields__"] is not self:
                    return
                # Ctrl-C may come at any instant, and then all this is done again: so the standard library works on a
                # draft, and the class is taken for complete only when everything else of it is in place.
                found = self._first_methods() or self._methods()
                last = {name: found.pop(name) for name in ("__init__", "__dataclass_fields__")}
                for name, value in (found | last).items():
                    setattr(self.made, name, value)

        def write(self):
            """Everything is written, as far as it was not."""
            with _lock:
                found = self._methods()
                for name in _WRITTEN_LATER:
                    if name in found:
                        setattr(self.made, name, found[name])

        def _first_methods(self):
            """What an instance of a plain frozen class cannot do without, written in a quarter of the time that all of
            it takes; the rest writes itself when it is first called. None for other classes."""
            written = vars(self.written)
            has_own = any(name in written for name in (*_WRITTEN_LATER, "__setattr__", "__delattr__"))
            is_base = (hasattr(base, "__dataclass_fields__") for base in self.written.__mro__[1:])
            if not self.options["frozen"] or has_own or any(is_base):
                return None
            draft = self._draft()
            dataclasses.dataclass(init=False, repr=False, eq=False)(draft)  # finds the fields, and compiles nothing
            found = {name: getattr(draft, name) for name in ("__dataclass_fields__", "__match_args__")}
            init = _quick_init(self.made, found["__dataclass_fields__"])
            if init is None:
                return None
            found["__init__"] = init
            found["__setattr__"], found["__delattr__"] = _refusals(self.made, found["__dataclass_fields__"])
            found["__dataclass_params__"] = _Params(self)
            if self.options["repr"]:
                found["__repr__"] = self._written_when_called("__repr__")
            if self.options["eq"]:
                found["__eq__"] = self._written_when_called("__eq__")
                found["__hash__"] = self._written_when_called("__hash__")
            return found

        def _written_when_called(self, name):
            def method(instance, *arguments):
                self.write()
                return getattr(self.made, name)(instance, *arguments)

            return method

        def _methods(self):
            """What the standard library adds to the class, by name."""
            draft = self._draft()
            before = dict(vars(draft))
            dataclasses.dataclass(**self.options)(draft)
            found = {
                name: value
                for name, value in vars(draft).items()
                if name.startswith("__") and name != "__doc__" and before.get(name, draft) is not value
            }
            if self.options["frozen"]:
                found["__init__"] = _quick_init(self.made, found["__dataclass_fields__"]) or found["__init__"]
            return found

        def _draft(self):
            content = {name: value for name, value in vars(self.written).items() if name not in _OF_EVERY_CLASS}
            content["__doc__"] = content.get("__doc__") or "none"  # or one is made of the signature, at great length
            return type(self.written)(self.written.__name__, self.written.__bases__, content)

    class _Params:
        """Stands for what a class was decorated with, which is asked for when another is made of it."""

        def __init__(self, incomplete):
            self._incomplete = incomplete

        def __get__(self, instance, owner):
            self._incomplete.write()
            return self._incomplete.made.__dataclass_params__

    def _refusals(made, names):
        """`__setattr__` and `__delattr__` of a frozen class."""

        def __setattr__(self, name, value):  # noqa: N807
            if type(self) is made or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(made, self).__setattr__(name, value)

        def __delattr__(self, name):  # noqa: N807
            if type(self) is made or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(made, self).__delattr__(name)

        return __setattr__, __delattr__

    def _quick_init(made, known):
        """An `__init__` of a frozen class with known fields that fills its slots directly, in half the time that it
        takes to go around the `__setattr__` that refuses. None where it has to do more than that."""
        fields = [field for field in known.values() if field._field_type is not dataclasses._FIELD_CLASSVAR]
        is_plain = all(field._field_type is dataclasses._FIELD and field.init and not field.kw_only for field in fields)
        slots = {f"_set_{field.name}": getattr(made, field.name, None) for field in fields}
        defaults = [_default_of(field) for field in fields if _default_of(field) is not dataclasses.MISSING]
        is_plain &= all(_default_of(field) is dataclasses.MISSING for field in fields[: len(fields) - len(defaults)])
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
        init = scope["__init__"]
        init.__defaults__ = tuple(defaults) or None
        init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
        init.__qualname__ = f"{made.__qualname__}.__init__"
        return init

    def _default_of(field):
        has_factory = field.default_factory is not dataclasses.MISSING
        return dataclasses._HAS_DEFAULT_FACTORY if has_factory else field.default

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
