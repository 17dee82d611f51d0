"""``python -m fuzz TARGET [SECONDS]``: look for bytes that a target reads wrongly, led by the code that they reach.

Needs ``atheris``: ``pip install -e '.[fuzz]'``. What is found is written to ``build/fuzz``, and belongs into the
seeds of the target, which the unit tests read. Interesting inputs are kept there too: the next time goes on from them.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import atheris

with atheris.instrument_imports(include=["jobman", "yaml"]):
    from fuzz.targets import TARGETS

from fuzz.seeds import SEEDS

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOUND = os.path.join("build", "fuzz")
_LONGEST = 4_096


def main(words: Sequence[str]) -> int:
    """Fuzz one target for so many seconds; does not return, since the fuzzer ends the process."""
    if not words or words[0] not in TARGETS:
        print(f"usage: python -m fuzz TARGET [SECONDS]; targets are: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    name, seconds = words[0], words[1] if len(words) > 1 else "60"
    corpus = os.path.join(_FOUND, name)
    os.makedirs(corpus, exist_ok=True)
    for place, seed in enumerate(SEEDS[name]):
        with open(os.path.join(corpus, f"seed-{place}"), "wb") as file:
            file.write(seed)
    options = (
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST}",
        f"-artifact_prefix={_FOUND}/{name}-",
        "-verbosity=0",
    )
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", corpus], TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
