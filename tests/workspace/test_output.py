"""The model's copy of an output, and the live stream."""

import time
import tracemalloc

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.workspace.output import (
    PRINTED_CHARACTERS,
    RESULT_BYTES,
    LiveFeed,
    OutputCapture,
    ShownText,
    TerminalText,
    clean,
)

ESC = "\x1b"


def captured(*pieces: bytes, limit: int = RESULT_BYTES) -> OutputCapture:
    capture = OutputCapture(limit)
    for piece in pieces:
        capture.feed(piece)
    capture.finish()
    return capture


def test_short_output_is_kept_as_it_is():
    capture = captured(b"one\ntwo\n", "drei ü \u2028 \x85 \x0c end".encode())
    assert capture.text == "one\ntwo\ndrei ü \u2028 \x85 \x0c end"
    assert not capture.truncated


def test_a_character_split_over_reads_stays_whole():
    text = "a€🙂z" * 50
    data = text.encode()
    for size in (1, 2, 3, 5):
        assert captured(*(data[at : at + size] for at in range(0, len(data), size))).text == text


def test_bytes_that_are_no_utf8_are_replaced_and_counted():
    capture = captured(b"ok \xff\xfe \x9d end\n")
    assert capture.text == "ok \ufffd\ufffd \ufffd end\n"
    assert capture.total_bytes == 12


def test_a_character_that_never_becomes_whole_is_replaced_at_the_end():
    capture = OutputCapture()
    assert capture.feed("€".encode()[:2]) == ""
    assert capture.finish() == "\ufffd"
    assert capture.text == "\ufffd"


def test_bytes_that_look_like_surrogates_give_no_surrogate():
    capture = captured(b"\xed\xa0\x80\xed\xb0\x80")
    assert not any(0xD800 <= ord(character) < 0xE000 for character in capture.text)
    capture.text.encode()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (f"{ESC}[1;33mwarn{ESC}[m done", "warn done"),
        (f"{ESC}]8;;http://x{ESC}\\link{ESC}]8;;{ESC}\\ end", "link end"),
        (f"before{ESC}]52;c;AAAA\a after", "before after"),
        (f"{ESC}]0;title\atext", "text"),
        (f"{ESC}Pq#0;2;0;0;0{ESC}\\text", "text"),
        (f"{ESC}(B{ESC}7{ESC}8{ESC}=text", "text"),
        ("\x9b31mred\x9b0m", "red"),
        (f"{ESC}]unterminated\nnext line", "\nnext line"),
        (f"{ESC}[31", ""),
        ("1%\r50%\r100%\n", "100%\n"),
        (
            f"{ESC}[1;33mwarn{ESC}[m {ESC}]8;;http://x{ESC}\\link{ESC}]8;;{ESC}\\ 1%\r50%\r100%\n",
            "warn link 100%\n",
        ),
        ("Downloading 1%\rDownloading 50%\rDownloading 100%\nok", "Downloading 100%\nok"),
        ("working\r       \rdone\n", "done\n"),
        (f"one{ESC}[2K{ESC}[1Gtwo\n", "two\n"),
        ("dos\r\nlines\r\n\r\n", "dos\nlines\n\n"),
        ("last state\r", "last state"),
        ("N\bNA\bAME\n", "NAME\n"),
        ("|\b/\b-\bok", "ok"),
        ("bell\a nul\0 del\x7f", "bell nul\ufffd del"),
        ("tab\tand £ and \xa0 stay", "tab\tand £ and \xa0 stay"),
    ],
)
def test_the_model_reads_what_a_terminal_would_show_in_the_end(shown: str, expected: str):
    assert clean(shown) == expected
    assert captured(shown.encode()).text == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["\n", "\r", "\r\n", "\b", f"{ESC}[31m", f"{ESC}]8;;x{ESC}\\", f"{ESC}[2K", "\a", ESC]
            ),
            st.text(max_size=5),
        ),
        max_size=30,
    ),
    st.integers(1, 7),
)
def test_reads_of_any_size_give_the_same_text(parts: list[str], size: int):
    data = "".join(parts).encode(errors="replace")
    whole = captured(data)
    pieces = captured(*(data[at : at + size] for at in range(0, len(data), size)))
    assert pieces.text == whole.text
    assert not {character for character in whole.text if character in "\x1b\r\b\a"}


def test_progress_without_any_line_end_comes_to_its_last_state_in_bounded_memory():
    cleaner = TerminalText()
    passed_on = "".join(cleaner.feed(f"\rdownloaded {count} of 100000") for count in range(100_001))
    assert passed_on == ""
    assert cleaner.finish() == "downloaded 100000 of 100000"


def test_an_endless_control_string_shows_nothing_and_is_not_kept():
    cleaner = TerminalText()
    shown = cleaner.feed(f"start {ESC}]52;c;") + "".join(cleaner.feed("A" * 1000) for _ in range(1000))
    assert shown + cleaner.feed(f"A{ESC}") + cleaner.feed("\\ end") + cleaner.finish() == "start  end"


def test_hostile_lines_take_time_in_proportion_to_their_length():
    for unit in ("\x9d", "a\b", "\r", ESC, f"{ESC}[", "1 \r", f"{ESC}]x"):
        text = unit * (300_000 // len(unit))
        began = time.monotonic()
        cleaner = TerminalText()
        cleaner.feed(text + "\a")
        cleaner.finish()
        assert time.monotonic() - began < 20, f"{unit!r} takes quadratic time"


def test_nothing_is_cut_at_the_limit_and_something_one_byte_above():
    assert not captured(b"x" * RESULT_BYTES).truncated
    assert captured(b"x" * RESULT_BYTES).text == "x" * RESULT_BYTES
    above = captured(b"x" * (RESULT_BYTES + 1))
    assert above.truncated
    assert len(above.text.encode()) <= RESULT_BYTES


def test_the_cut_keeps_whole_lines_of_head_and_tail_and_names_true_numbers():
    lines = [f"line {number}\n" for number in range(20_000)]
    capture = captured("".join(lines).encode())
    head, marker, tail = capture.text.partition("[... ")
    size, _, tail = tail.partition(" bytes of output are not shown here ...]\n")
    assert marker
    assert head == "".join(lines[: head.count("\n")])
    assert tail == "".join(lines[-tail.count("\n") :])
    assert int(size) + len(head) + len(tail) == capture.total_bytes == len("".join(lines))
    assert len(capture.text.encode()) <= RESULT_BYTES


def test_one_line_of_wide_characters_is_cut_between_characters():
    capture = captured(*["€🙂".encode() * 1000] * 100)
    assert "\ufffd" not in capture.text
    assert len(capture.text.encode()) <= RESULT_BYTES
    assert capture.total_bytes == 700_000


def test_cleaning_comes_before_the_cut():
    capture = captured(*[f"\r{ESC}[32m{number}%{ESC}[m".encode() for number in range(20_000)], b"\n")
    assert capture.total_bytes > RESULT_BYTES
    assert capture.text == "19999%\n"
    assert not capture.truncated


def test_overflow_is_all_of_an_output_that_is_cut_and_nothing_of_another():
    capture = OutputCapture(limit=1000)
    capture.feed(b"x" * 600 + b"\n")
    capture.feed(b"y" * 399)
    assert capture.take_overflow() == b""
    capture.finish()
    assert (capture.truncated, capture.take_overflow()) == (False, b"")
    capture = OutputCapture(limit=1000)
    capture.feed(b"x" * 600 + b"\n")
    capture.feed(b"y" * 399 + b"\n")
    assert capture.take_overflow() == b"x" * 600 + b"\n" + b"y" * 399 + b"\n"
    capture.feed(b"\x1b[1mz\x1b[m\nno line end")
    assert capture.take_overflow() == b"z\n"
    capture.finish()
    assert (capture.take_overflow(), capture.take_overflow()) == (b"no line end", b"")


def test_text_is_taken_piece_by_piece_each_cut_by_itself():
    shown = ShownText(limit=1000)
    shown.feed("one\nhalf a li")
    assert shown.take() == ("one\nhalf a li", False)
    shown.feed("ne\n")
    assert shown.take() == ("ne\n", False)
    shown.feed("a line\n" * 1000)
    text, is_cut = shown.take()
    assert is_cut
    assert len(text) <= 1000
    assert shown.take() == ("", False)


def test_text_that_nobody_takes_costs_bounded_memory():
    shown = ShownText()
    tracemalloc.start()
    try:
        for _ in range(300):
            shown.feed("a line of text\n" * 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


async def test_live_text_arrives_raw_and_in_order():
    live, seen = LiveFeed(), []

    async def sink(text: str, left_out: int) -> None:
        assert not left_out
        seen.append(text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live.forward, sink)
        for number in range(50):
            live.feed(f"{ESC}[31m{number}\n")
            await anyio.lowlevel.checkpoint()
        live.close()
    assert "".join(seen) == "".join(f"{ESC}[31m{number}\n" for number in range(50))


async def test_a_slow_watcher_costs_bounded_memory_and_is_told_what_is_missing():
    live, seen, may_go_on = LiveFeed(limit=1000), [], anyio.Event()

    async def sink(text: str, left_out: int) -> None:
        seen.append((text, left_out))
        await may_go_on.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live.forward, sink)
        live.feed("first")
        await anyio.wait_all_tasks_blocked()
        for _ in range(10_000):
            live.feed("😀" * 100)
        may_go_on.set()
        await anyio.wait_all_tasks_blocked()
        live.feed("last")
        live.close()
    assert seen == [("first", 0), ("😀" * 1000, 2 * 999_000), ("last", 0)]


def test_colours_are_kept_beside_the_text_and_nothing_else_that_a_terminal_obeys():
    capture = captured(
        f"{ESC}[1;31mred{ESC}[0m plain\n{ESC}]0;title\x07{ESC}[2J10%\r20%{ESC}[38;5".encode(),
        f";9mx\b{ESC}[?25l{ESC}c\n".encode(),
    )
    assert capture.text == "red plain\n20%\n"
    assert capture.printed == f"{ESC}[1;31mred{ESC}[0m plain\n10%\r20%{ESC}[38;5;9mx\b\n"


def test_output_without_colours_is_not_kept_twice():
    assert captured(f"plain {ESC}[2Kand wiped\r50%\n".encode()).printed is None


def test_of_long_output_in_colour_the_end_is_kept_from_the_beginning_of_a_line():
    capture = captured(*(f"{ESC}[32mline {number}{ESC}[0m\n".encode() for number in range(20_000)))
    assert capture.printed is not None
    assert len(capture.printed) <= PRINTED_CHARACTERS
    assert capture.printed.startswith(f"{ESC}[32mline ")
    assert capture.printed.endswith(f"line 19999{ESC}[0m\n")
    assert capture.truncated


def test_a_long_line_in_colour_does_not_begin_with_the_rest_of_a_sequence():
    capture = captured(*(f"{ESC}[38;5;9m{'x' * 20}".encode() for _ in range(10_000)))
    assert capture.truncated
    assert capture.printed is not None
    assert capture.printed.replace(f"{ESC}[38;5;9m", "").strip("x") == ""


def test_colours_that_would_cost_some_of_the_text_are_left_out():
    capture = captured(*(f"{ESC}[38;2;1;2;3m{ESC}[48;2;1;2;3mx".encode() for _ in range(10_000)))
    assert not capture.truncated
    assert capture.printed is None
