"""Runs cases one after the other and says what came of each."""

import sys
import traceback


def run(cases):
    """Prints a line for each `(name, function)`; ends the process with 1 if one failed."""
    failed = 0
    for name, case in cases:
        try:
            case()
            print("ok", name, flush=True)
        except Exception as error:  # a case may fail in any way; the others go on
            failed += 1
            print(f"FAILED {name}: {error!r}", flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)


def same(seen, expected):
    """Fails unless both are the same."""
    assert seen == expected, f"{seen!r} instead of {expected!r}"
