"""Known defects that these tests have found and that are not fixed yet.

They are reported in a loud line and do not fail the stage. Whoever mends one removes its entry.
"""

from __future__ import annotations

import re
from collections import Counter

KNOWN = {
    r".*holds the end of the erased": (
        "words of redacted texts stay in the search index: `optimize` of FTS5 keeps delete markers if the levels above "
        "all segments are empty"
    ),
}

seen: Counter[str] = Counter()


def unknown(problems: list[str]) -> list[str]:
    """Returns the problems that are not known defects, and counts the others."""
    found = []
    for problem in problems:
        for pattern, defect in KNOWN.items():
            if re.match(pattern, problem, re.DOTALL):
                seen[defect] += 1
                break
        else:
            found.append(problem)
    return found
