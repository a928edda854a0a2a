"""Symbols: a bijection, whether they are few (Python objects) or many (arrays)."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.relations import large_interner
from elastalog.relations.large_interner import LargeInterner
from elastalog.relations.symbols import SmallInterner, Symbols
from elastalog.settings import SETTINGS

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
FORMS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


@pytest.fixture(
    params=[(0, None), (0, "0"), (4, None), (1 << 16, None)],
    ids=["arrays", "arrays in files", "arrays from the fifth on", "Python objects"],
)
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Up to how many texts are Python objects."""
    number: int
    number, limit = request.param
    monkeypatch.setattr(SETTINGS, "few_texts", number)
    if limit is not None:
        monkeypatch.setenv(large_interner.VARIABLE, limit)
    return number


def test_ids_count_from_zero_and_stay(few: int) -> None:
    table = Symbols()
    assert table.encode(pa.array(["b", "a", "b", ""])).tolist() == [0, 1, 0, 2]
    assert table.encode(pa.chunked_array([["c", "a"], ["d"]])).tolist() == [3, 1, 4]
    assert table.encode_one("a") == 1
    assert table.encode_one("e") == 5
    assert table.encode_texts(["f", "e", "f", "é"]).tolist() == [6, 5, 6, 7]
    assert table.strings_from(3) == ["c", "d", "e", "f", "é"]
    assert [table.text(i) for i in range(len(table))] == ["b", "a", "", "c", "d", "e", "f", "é"]
    assert table.texts(np.array([7, 2, 0, 0, 1], np.int32)) == ["é", "", "b", "b", "a"]
    assert table.array(1, 4).to_pylist() == ["a", "", "c"]
    assert isinstance(table._texts, LargeInterner if few < 8 else SmallInterner)


def test_finding_never_adds(few: int) -> None:
    table = Symbols()
    assert table.find("a") is None
    assert table.encode_one("a") == 0
    assert table.find("a") == 0
    assert table.find("") is None
    assert table.find("ab") is None
    assert len(table) == 1


@pytest.mark.parametrize("kind", FORMS)
def test_every_arrow_form_of_text_is_encoded(kind: pa.DataType, few: int) -> None:
    table = Symbols()
    array = pa.array(["x", "y", "x"]).cast(kind)
    assert table.encode(array).tolist() == [0, 1, 0]
    assert table.encode(array[1:]).tolist() == [1, 0]
    assert table.encode(pa.chunked_array([array, array[2:], array[:0]])).tolist() == [0, 1, 0, 0]
    assert table.encode(pa.chunked_array([], kind)).tolist() == []
    assert table.encode(array[:0]).tolist() == []


BLOCKS = st.lists(st.lists(TEXTS | st.sampled_from(["", "a", "aaaaaaaa", "aaaaaaaab"]), max_size=30), max_size=6)


@given(BLOCKS, st.data())
@settings(max_examples=150, deadline=None)
def test_every_way_in_gives_the_ids_of_a_dict(blocks: list[list[str]], data: st.DataObject) -> None:
    expected: dict[str, int] = {}
    table = Symbols()
    if data.draw(st.booleans()):
        table._many()
    for block in blocks:
        ids = [expected.setdefault(text, len(expected)) for text in block]
        match data.draw(st.sampled_from(["column", "slice", "chunks", "one by one", "texts", "stored"])):
            case "column":
                assert table.encode(pa.array(block, data.draw(st.sampled_from(FORMS)))).tolist() == ids
            case "slice":
                longer = pa.array(["before", *block, "after"], data.draw(st.sampled_from(FORMS[:3])))
                assert table.encode(longer[1:-1]).tolist() == ids
            case "chunks":
                array = pa.chunked_array([block[:3], block[3:]], pa.string())
                assert table.encode(array).tolist() == ids
            case "one by one":
                assert [table.encode_one(text) for text in block] == ids
            case "texts":
                assert table.encode_texts(block).tolist() == ids
            case "stored":
                new = [text for text in expected if table.find(text) is None]
                table.extend(new if data.draw(st.booleans()) else pa.array(new, pa.string()))
    assert len(table) == len(expected)
    everything = np.arange(len(expected), dtype=np.int32)
    assert table.decode(everything).to_pylist() == list(expected) == table.texts(everything) == table.strings_from(0)
    for text, text_id in expected.items():
        assert (table.find(text), table.encode_one(text), table.text(text_id)) == (text_id, text_id, text)


def test_growth_to_many_keeps_every_id(few: int) -> None:
    table = Symbols()
    expected: list[str] = []
    for size in (1, 3, 30, 300, 3000, 30_000):
        new = [f"{'x' * (i % 23)}{i}" for i in range(len(expected), len(expected) + size)]
        expected += new
        assert table.encode(pa.array([*new, expected[0], *new])).tolist()[-size:] == list(
            range(len(expected) - size, len(expected))
        )
    assert table.strings_from(0) == expected
    assert table.encode(pa.array(expected[::-1])).tolist() == list(range(len(expected) - 1, -1, -1))
    words = np.array([33_000, 0, 5, 5], np.int32)
    assert table.decode(words).to_pylist() == [expected[word] for word in words]
    assert table.decode(words[:0]).type == table.decode(words).type == pa.string()


def test_texts_that_differ_in_one_byte_anywhere_are_told_apart() -> None:
    table = Symbols()
    table._many()
    texts = ["a" * length for length in range(40)]
    texts += [f"{'a' * at}b{'a' * (length - at - 1)}" for length in range(40) for at in range(length)]
    assert table.encode(pa.array(texts)).tolist() == list(range(len(texts)))


def test_texts_from_a_store_are_never_written_to() -> None:
    """They lie in memory that others may look at."""
    kept = pa.array(["a", "bc"], pa.large_string())
    before = [buffer.to_pybytes() for buffer in kept.buffers()[1:]]
    table = Symbols()
    table._many()
    table.extend(kept)
    view = table.array(0, 2)
    assert table.encode_texts(["bc", "d", "a"]).tolist() == [1, 2, 0]
    table.extend(pa.chunked_array([["e"], ["f", "g"]]))
    assert table.strings_from(0) == ["a", "bc", "d", "e", "f", "g"]
    assert table.find("f") == 4
    assert [buffer.to_pybytes() for buffer in kept.buffers()[1:]] == before
    assert view.to_pylist() == ["a", "bc"]


def test_a_lone_surrogate_is_no_symbol(few: int) -> None:
    table = Symbols()
    table.encode_texts(["a", "b", "c", "d", "e"])
    for add in (table.encode_one, lambda text: table.encode_texts([text])):
        with pytest.raises(UnicodeEncodeError):
            add("\ud800")
    assert len(table) == 5


def test_too_many_symbols_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_interner, "MOST_TEXTS", 1000)
    table = Symbols()
    table._many()
    with pytest.raises(LimitReached, match="E0509"):
        table.encode(pa.array([str(i) for i in range(2000)]))
    with pytest.raises(LimitReached, match="E0509"):
        Symbols.extend(table, [f"x{i}" for i in range(2000)])


def test_threads_agree_on_every_id(few: int) -> None:
    table = Symbols()
    texts = [f"text {i}" for i in range(4000)]
    found: list[dict[str, int]] = [{} for _ in range(4)]

    def work(number: int) -> None:
        for start in range(0, 4000, 100):
            part = texts[(start + 1000 * number) % 4000 :][:100]
            ids = table.encode(pa.array(part)).tolist() if number % 2 else list(map(table.encode_one, part))
            assert table.texts(np.array(ids, np.int32)) == part
            found[number].update(zip(part, ids, strict=True))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == found[2] == found[3]
    assert sorted(found[0].values()) == list(range(4000))
    assert len(found[0]) == 4000


def test_ctrl_c_right_after_an_operator_changes_no_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter notices it between the operator, which has added texts, and the next line."""
    from elastalog.relations import text_operators

    table = Symbols()
    table._many()
    assert table.encode(pa.array(["a", "b"])).tolist() == [0, 1]
    for name in ("intern", "enter"):
        operator = getattr(text_operators, name)

        def interrupted(*arguments: object, operator: Any = operator) -> None:
            operator(*arguments)
            raise KeyboardInterrupt

        table.extend([f"stored before {name}"])
        monkeypatch.setattr(text_operators, name, interrupted)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                table.encode(pa.array(["b", f"new at {name}"]))
        monkeypatch.undo()
    found = table.encode(pa.array(["c", "b", "new at intern", "new at enter", "stored before enter"]))
    assert table.decode(found).to_pylist() == ["c", "b", "new at intern", "new at enter", "stored before enter"]
    everything = table.strings_from(0)
    assert len(set(everything)) == len(everything)
    assert table.encode_texts(everything).tolist() == list(range(len(everything)))


def test_ctrl_c_between_a_text_and_its_id_changes_no_meaning() -> None:
    table = SmallInterner()
    table.extend(["a"])
    table.listed.append("b")  # and then it came
    assert table.intern(pa.array(["c", "b"])).tolist() == [2, 1]
    assert table.ids["b"] == 1


def test_texts_in_files_are_not_changed_by_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "few_texts", 0)
    monkeypatch.setenv(large_interner.VARIABLE, "0")
    table = Symbols()
    table.encode_texts([f"t{i}" for i in range(100)])
    texts = table._texts
    assert isinstance(texts, LargeInterner)
    assert all(map(large_interner.is_mapped, (texts._bytes, texts._ends, texts._index[0])))
    child = os.fork()
    if not child:
        is_right = table.encode_one("of the child") == 100 and table.text(100) == "of the child"
        os._exit(0 if is_right and table.find("t50") == 50 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert table.find("of the child") is None
    assert table.encode_one("ours") == 100
    assert table.strings_from(99) == ["t99", "ours"]


def test_a_limit_that_is_no_number_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(large_interner.VARIABLE, "much")
    assert large_interner.most_in_memory() > 1 << 20
    assert not large_interner.is_mapped(large_interner.zeros(1000, np.int64))


def test_texts_that_are_expected_get_the_ids_they_would_have_had() -> None:
    """Room that was made beforehand, too little of it or too much, changes nothing; neither do texts that are there."""
    texts = [f"text {number} {'x' * (number % 50)}" for number in range(5_000)]
    for size in (0, 1, 1_000, 100_000, 10_000_000):
        known = Symbols()
        assert known.encode_texts(["first", "text 7 xxxxxxx"]).tolist() == [0, 1]
        known.expect(size)
        assert known.are_many
        assert known.find("first") == 0
        assert known.encode(pa.array(texts)).tolist() == [*range(2, 9), 1, *range(9, 5_001)]
        assert known.strings_from(0) == ["first", "text 7 xxxxxxx", *texts[:7], *texts[8:]]
        known.expect(size)  # once more, when there are many
        assert known.encode_one("text 4999 " + "x" * 49) == 5_000
        assert known.encode_one("new") == 5_001


def test_no_more_memory_is_expected_than_texts_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTALOG_TEXT_MEMORY", "4096")
    known = Symbols()
    known.expect(1 << 40)
    texts = known._texts
    assert isinstance(texts, LargeInterner)
    assert len(texts._bytes) == 4096
    assert not large_interner.is_mapped(texts._bytes)
