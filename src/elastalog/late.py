"""Work put off until it is needed, so that a command pays only for what it uses.

The standard library writes and compiles six methods for every dataclass when its module is imported: 0.7 ms a class,
most of which a small program never makes an instance of. `dataclass` here makes the same classes without compiling
anything: only `__init__` has to be written for the fields of its class, and that is done when the first instance is
made. With the standard library's decorator in its place, `elastalog run` on a program of three facts takes 1.03 s of
processor time instead of 0.79 (Python 3.11, best of eight, by turns, on a busy machine). `module` is for those that
take long to import and are seldom used, `function` for what is called by name.
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
    from dataclasses import MISSING, FrozenInstanceError
    from operator import attrgetter
    from reprlib import recursive_repr
    from types import MemberDescriptorType, SimpleNamespace

    _OF_EVERY_CLASS = ("__dict__", "__weakref__")

    def dataclass(*, frozen=False, slots, eq=True, repr=True):  # noqa: A002  # as the standard library names them
        """`dataclasses.dataclass` for a class with slots. A field that is no parameter has a default."""
        assert slots, "a dataclass without slots would keep its defaults in the class"

        def decorate(written):
            own = _own_fields(written)
            fields = _inherited_fields(written) | own
            methods = {}
            if repr:
                methods["__repr__"] = _repr(fields)
            if eq:
                methods |= _comparison(fields, is_hashed=frozen)
            if frozen:  # without them, an instance could not be set up again by pickle
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
            made = _with_slots(written, own, fields, methods)
            made.__dataclass_params__ = SimpleNamespace(frozen=frozen, eq=eq, repr=repr)
            if "__init__" not in vars(written):
                made.__init__ = _init_to_be_written(made, fields, frozen)
            if frozen:
                made.__setattr__, made.__delattr__ = _refusals(made, fields)
            return made

        return decorate

    def _own_fields(written):
        """The fields in the body of a class, as the standard library describes them."""
        kinds = inspect.get_annotations(written)
        return {name: _field(written, name, kind) for name, kind in kinds.items() if _is_field(kind)}

    def _is_field(kind):
        """Whether an annotation, given as text, defines a field."""
        return not kind.startswith(("ClassVar", "typing.ClassVar"))

    def _field(written, name, kind):
        given = vars(written).get(name, MISSING)
        field = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        field.name, field.type, field.kw_only, field._field_type = name, kind, False, dataclasses._FIELD
        return field

    def _inherited_fields(written):
        bases = reversed(written.__mro__[1:])
        return {name: field for base in bases for name, field in getattr(base, "__dataclass_fields__", {}).items()}

    def _with_slots(written, own, fields, methods):
        """The class again, with a slot for each field of its own, which cannot be beside a default, and with the
        methods that it does not define itself."""
        kept = {name: value for name, value in vars(written).items() if name not in own and name not in _OF_EVERY_CLASS}
        if kept.get("__hash__", MISSING) is None:  # since it has an `__eq__` of its own
            del kept["__hash__"]
        inherited = (vars(base).get(name) for base in written.__mro__[1:] for name in own)
        taken = {found.__name__ for found in inherited if isinstance(found, MemberDescriptorType)}
        added = {
            "__slots__": tuple(name for name in own if name not in taken),
            "__dataclass_fields__": fields,
            "__match_args__": tuple(name for name, field in fields.items() if field.init),
        }
        made = type(written)(written.__name__, written.__bases__, added | methods | kept)
        made.__qualname__ = written.__qualname__
        return made

    def _values(fields):
        """A function that returns the values of some fields of an instance, as a tuple."""
        match fields:
            case []:
                return lambda instance: ()
            case [field]:
                value = attrgetter(field.name)
                return lambda instance: (value(instance),)
            case _:
                return attrgetter(*(field.name for field in fields))

    def _comparison(fields, is_hashed):
        """`__eq__` and, for immutable classes, `__hash__`."""
        values = _values([field for field in fields.values() if field.compare])

        def __eq__(self, other):  # noqa: N807
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self):  # noqa: N807
            return hash(values(self))

        return {"__eq__": __eq__, "__hash__": __hash__ if is_hashed else None}

    def _repr(fields):
        shown = [field for field in fields.values() if field.repr]

        @recursive_repr()
        def __repr__(self):  # noqa: N807
            values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in shown)
            return f"{self.__class__.__qualname__}({values})"

        return __repr__

    def _refusals(made, fields):
        """`__setattr__` and `__delattr__` of an immutable class."""

        def __setattr__(self, name, value):  # noqa: N807
            if type(self) is made or name in fields:
                raise FrozenInstanceError(f"cannot assign to field {name!r}")
            super(made, self).__setattr__(name, value)

        def __delattr__(self, name):  # noqa: N807
            if type(self) is made or name in fields:
                raise FrozenInstanceError(f"cannot delete field {name!r}")
            super(made, self).__delattr__(name)

        return __setattr__, __delattr__

    def _init_to_be_written(made, fields, frozen):
        def __init__(self, *arguments, **named):  # noqa: N807
            made.__init__ = _init(made, fields, frozen)
            made.__init__(self, *arguments, **named)

        return __init__

    def _init(made, fields, frozen):
        """`__init__` for the fields of a class. For an immutable one it fills the slots directly, in half the time that
        circumventing the refusing `__setattr__` would take."""
        scope = {"_MISSING": MISSING}
        for name, field in fields.items():
            scope[f"_default_{name}"], scope[f"_make_{name}"] = field.default, field.default_factory
            scope[f"_set_{name}"] = getattr(made, name).__set__
        parameters = ["self", *(_parameter(field) for field in fields.values() if field.init)]
        fill = "_set_{0}(self, {1})" if frozen else "self.{0} = {1}"
        steps = [fill.format(name, _value(field)) for name, field in fields.items()]
        steps.append("self.__post_init__()" if hasattr(made, "__post_init__") else "pass")
        exec(f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(steps), scope)
        init = scope["__init__"]
        init.__annotations__ = {name: field.type for name, field in fields.items() if field.init} | {"return": None}
        init.__qualname__ = f"{made.__qualname__}.__init__"
        return init

    def _parameter(field):
        if field.default_factory is not MISSING:
            return f"{field.name}=_MISSING"
        return field.name if field.default is MISSING else f"{field.name}=_default_{field.name}"

    def _value(field):
        """The expression that a field is set to."""
        name, is_made = field.name, field.default_factory is not MISSING
        if field.init:
            return f"_make_{name}() if {name} is _MISSING else {name}" if is_made else name
        return f"_make_{name}()" if is_made else f"_default_{name}"

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
    """A module that is imported when one of its names is first used."""
    return _Module(name)


def function(home: str) -> Callable[..., Any]:
    """The function `module:name`, imported when it is first called."""
    module, _, name = home.partition(":")

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call
