"""Where fuzzing begins, and what it has found: every target reads these in the unit tests too."""

from __future__ import annotations

# Spellings that mean different things to different programs.
TRICKY = (
    *(".5d", "5d", "1.5d", "1_000", "0x10", "0b1", "0o7", "07", "010", "yes", "no", "on", "y", "True", "TRUE", "true"),
    *("false", "1:30", "190:20:30", "1e3", "1.", ".5", "+4", "-0", "-1", "0", "00", "unlimited", "null", "~", "Null"),
    *("2026-11-29", "2026-11-29T15:19:20Z", "2026-11-29 15:19:20Z", "1970-01-01T00:00:00Z", "1969-12-31T00:00:00Z"),
    *("4KiB", "4k", "1KiB", "07KiB", "9223372036854775807", "9223372036854775808", ".inf", ".nan", "=", "<<", "1w2d"),
    *("08", "0078"),
)
UNUSUAL = ("\u2028", "1\u2028", "a\u2028b", "\u0661", "\uff11", "\u00a01", "", " ", " 1", "\n", "1\n", "\udcff")
_BYTES = tuple(text.encode("utf-8", "surrogateescape") for text in (*TRICKY, *UNUSUAL))


def _texts(*texts: str) -> tuple[bytes, ...]:
    return (*_BYTES, *(text.encode() for text in texts))


SEEDS: dict[str, tuple[bytes, ...]] = {
    "duration": _texts(
        *("1w2d3h", "1.5W", "275ms", "12.171369ms", "1\u00b5s", "1\u03bcs", "2562047h47m16.854775807s"),
        # Found: the digits behind the nineteenth of a fraction make a nanosecond of a day.
        f".5155877822{'2' * 60}5d.515561293337308s",
        f".{'3' * 26}4w",
    ),
    "size": _texts("8EiB", "7EiB", "1048576", "4KiBB"),
    "instant": _texts(
        *("2262-04-11T23:47:16.854775807Z", "1677-09-21T00:12:43.145224192+00:00", "2026-11-29T15:19:60Z"),
        *("2000-02-29T23:59:59.1-23:59", "1900-02-29T00:00:00Z"),
    ),
    "numbers": _texts("0x_1f", "0b1_0", "0o17", "-0x8000000000000000", "1,2,+3", "1__0", "0_7", "-00"),
    "words": _texts(
        *("TERM", "sigterm", "RTMIN", "SIGSIGTERM", "SIG", "job=success,failure", "=x", "a=b=success", "j=success,"),
        # Found: capitals of other alphabets are not those of ours.
        *("\u017figterm", "s\u0131gint"),
    ),
    "selector": _texts("\x01\x08", "\x01\x24", "\x02\x09-", "\x03\x0e7", "\x7f\x00deadbeef", "\x7f\x00twice"),
    # 0078 was found: text to YAML, and a number to everybody else.
    "scalar": tuple(bytes((place,)) + text for place in range(6) for text in _BYTES),
    "document": (
        b"concurrency: {max_active_slots: 3, pools: {gpu: 1}}\n",
        b"job_specs:\n  a:\n    command: [sh, -c, 'x']\n    stop: {grace_period: 20s}\n",
        b"# x\nredaction:\n  patterns:\n    - |\n      a\n      b\n    - >-\n      c\n      d\n",
        b"secrets: {a: env:A, 'b': \"file:/x\"}\n",
        b'a: "\\u2028\\x85\\U0001f600"\n',
        "a: x\u2028b: 2\n".encode(),
        "\ufeffa: 1\n".encode(),
        "a: \u00fc\n".encode("utf-16"),
        b"[" * 10_000,
        b"a: " + b"[" * 60 + b"]" * 60,
        b"? a\n: b\n",
        b"a: !!str 5\n",
        b"%YAML 1.1\n---\na: 1\n...\n",
        b"retention: {a: !!tag:yaml.org,2002:map2b\n}\n",
        b" ! a: !",
        # Found: a line that no editor but YAML ends, half a character, a mark within a line.
        b"a: 1 # c\rb: 2\n",
        b'a: "\\ud83d"\n',
        "a: {b: 3\ufeff,c: {d: 1}}\n".encode(),
        *(b"retention: {max_jobs: " + text + b"}\n" for text in _BYTES),
    ),
}
