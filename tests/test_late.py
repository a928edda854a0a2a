"""Dataclasses whose methods are written when they are first used behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from elastalog import late

T = TypeVar("T")


@late.dataclass(frozen=True, slots=True)
class Point:
    """A class with a default, a class variable, and a method."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, compare=False)
    origin: ClassVar[str] = "corner"

    def sum(self) -> int:
        return self.x + self.y


@late.dataclass(frozen=True, slots=True)
class Named(Point):
    """A class with a base."""

    y: int = 7
    name: str = "?"


@late.dataclass(slots=True)
class Box(Generic[T]):
    content: T
    doubled: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.doubled = 2


@late.dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Compared by identity."""

    x: int


@late.dataclass(frozen=True, slots=True)
class Unpickled:
    """Set up by pickle before anybody makes one."""

    x: int
    y: str = "y"


@late.dataclass(frozen=True, slots=True)
class Own:
    """With a text of its own."""

    x: int

    def __repr__(self) -> str:
        return "own"


def test_nothing_is_compiled_before_an_instance_is_made() -> None:
    @late.dataclass(frozen=True, slots=True)
    class Unused:
        x: int

    parameters = ["self", "x"]
    assert list(inspect.signature(Unused.__init__).parameters) != parameters
    assert Unused(1) == Unused(1)
    assert list(inspect.signature(Unused.__init__).parameters) == parameters


def test_instances_are_as_those_of_the_standard_library() -> None:
    point = Point(1)
    assert (point.x, point.y, point.names, point.origin, point.sum()) == (1, 2, [], "corner", 3)
    assert repr(point) == "Point(x=1, y=2, names=[])"
    assert point == Point(1, names=["else"])
    assert hash(point) == hash(Point(1))
    assert point != Point(2)
    assert not hasattr(point, "__dict__")
    with pytest.raises(FrozenInstanceError):
        point.x = 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()


def test_a_subclass_has_the_fields_of_its_base_and_may_change_defaults() -> None:
    assert [each.name for each in fields(Named)] == ["x", "y", "names", "name"]
    assert Named(1) == Named(1, 7, [], "?")
    assert Named.__slots__ == ("name",)


def test_fields_are_known_without_an_instance() -> None:
    @late.dataclass(frozen=True, slots=True)
    class Fresh:
        x: int
        y: str = "y"

    assert dataclasses.is_dataclass(Fresh)
    assert [(each.name, each.default) for each in fields(Fresh)] == [("x", dataclasses.MISSING), ("y", "y")]
    assert replace(Fresh(1), y="z") == Fresh(1, "z")


def test_patterns_match_by_position() -> None:
    match Named(1, name="a"):
        case Point(x, y):
            assert (x, y) == (1, 7)
        case _:
            pytest.fail("no match")


def test_a_class_that_is_not_frozen_can_be_changed_and_not_hashed() -> None:
    box = Box("a")
    box.content = "b"
    assert box == Box("b")
    assert box.doubled == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(box)


def test_what_is_compared_by_identity_or_shown_in_its_own_way_stays_so() -> None:
    place = Place(1)
    assert place != Place(1)
    assert place == place
    assert len({place, Place(1)}) == 2
    assert repr(Own(1)) == "own"


def test_instances_can_be_copied_and_pickled() -> None:
    point = Named(1, 3, ["a"], "b")
    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point
    assert copy.deepcopy(point).names is not point.names
    assert copy.copy(Box(1)) == Box(1)


def test_a_process_that_has_made_none_can_read_a_pickled_one() -> None:
    written = b"\x80\x02ctests.test_late\nUnpickled\n)\x81](K\x05X\x01\x00\x00\x00zeb."  # a list of its fields
    read: Any = pickle.loads(written)
    assert read == Unpickled(5, "z")


def test_threads_may_make_the_first_instances_together() -> None:
    def first(_: int) -> Any:
        return made(1)

    for _ in range(20):

        @late.dataclass(frozen=True, slots=True)
        class made:  # noqa: N801
            x: int
            y: list[int] = field(default_factory=list)

        with ThreadPoolExecutor(8) as pool:
            assert len(set(map(repr, pool.map(first, range(8))))) == 1


def test_the_same_class_written_with_the_standard_library_is_equal_in_all_that_shows() -> None:
    @dataclass(frozen=True, slots=True)
    class Standard:
        """One."""

        x: int
        y: int = 2

    @late.dataclass(frozen=True, slots=True)
    class Late:
        """One."""

        x: int
        y: int = 2

    assert fields(Late)
    shown = set(vars(Standard)) - {"__init_subclass__", "__weakref__"}  # the latter before Python 3.11.5
    assert shown == set(vars(Late)) - {"__weakref__"}
    assert Late.__match_args__ == Standard.__match_args__


def test_an_interrupt_at_any_line_of_the_first_use_leaves_a_class_that_can_be_used() -> None:
    def interrupted_at(line: int) -> bool:
        """Whether there was such a line; a class that was completed then is as any."""

        @late.dataclass(frozen=True, slots=True)
        class Fresh:
            x: int
            y: int = 2

        left = line

        def trace(frame: Any, event: str, argument: object) -> Any:
            nonlocal left
            left -= event == "line"
            if left == 0:
                left = -1
                raise KeyboardInterrupt
            return trace

        gc.disable()  # whoever listens to it would be interrupted instead
        sys.settrace(trace)
        try:
            Fresh(1)
        except KeyboardInterrupt:
            is_interrupted = True
        else:
            is_interrupted = False
        finally:
            sys.settrace(None)
            gc.enable()
        assert (Fresh(1), repr(Fresh(3, 4)), hash(Fresh(1))) == (Fresh(1, 2), repr(Fresh(3, 4)), hash(Fresh(1, 2)))
        with pytest.raises(FrozenInstanceError):
            Fresh(1).x = 5
        assert [found.name for found in fields(Fresh)] == ["x", "y"]
        return is_interrupted

    lines = [*range(1, 60), *range(60, 3000, 37)]
    assert sum(map(interrupted_at, lines)) > 30


def test_a_frozen_class_fills_its_slots_directly_and_refuses_all_the_same() -> None:
    place, other = Place(3), Place(x=3)
    assert (place.x, other.x) == (3, 3)
    with pytest.raises(FrozenInstanceError):
        place.x = 4
    with pytest.raises(TypeError):
        Place()
    assert Named(1).name == "?"
    assert "setattr" not in Place.__init__.__code__.co_names + Place.__init__.__code__.co_freevars


@pytest.mark.parametrize("first", [repr, hash, lambda made: made == made, lambda made: made != 1, lambda made: {made}])
def test_whatever_is_asked_of_an_instance_first_is_answered_as_later(first: Any) -> None:
    @late.dataclass(frozen=True, slots=True)
    class Fresh:
        x: int
        y: str = "y"

    @dataclass(frozen=True, slots=True)
    class Usual:
        x: int
        y: str = "y"

    assert first(Fresh(1)) == first(Fresh(1))
    assert (Fresh(1) == Fresh(1), Fresh(1) == Fresh(2), Fresh(1) == Usual(1), Fresh(1) == 1) == (True, *[False] * 3)
    assert hash(Fresh(1)) == hash(Usual(1))
    assert repr(Fresh(1)) == repr(Usual(1)).replace("Usual", "Fresh")
    assert str(inspect.signature(Fresh)) == str(inspect.signature(Usual))


def test_the_standard_library_and_plain_python_may_make_a_class_of_one() -> None:
    @late.dataclass(frozen=True, slots=True)
    class Base:
        x: int

    @dataclass(frozen=True)
    class More(Base):
        y: int = 2

    class Free(Base):
        pass

    assert repr(More(1)).endswith("More(x=1, y=2)")
    assert More(1) == More(1, 2)
    free = Free(1)
    free.note = "kept"
    assert (free == Free(1), hash(free) == hash(Base(1)), free == Base(1)) == (True, True, False)
    for name in ("x", "y"):
        with pytest.raises(FrozenInstanceError):
            setattr(Base(1), name, 3)
        with pytest.raises(FrozenInstanceError):
            delattr(Base(1), name)
    with pytest.raises(FrozenInstanceError):
        free.x = 3


def test_a_field_without_a_default_behind_one_that_has_it_is_refused() -> None:
    @late.dataclass(frozen=True, slots=True)
    class Wrong:
        x: int = 1
        y: int

    with pytest.raises(SyntaxError, match="default"):
        Wrong(1, 2)
