"""Words that are one edit apart: what may be a typo, and in which words."""

SHORTEST_TYPO = 5  # letters


def one_edit(left: str, right: str) -> bool:
    """Tell whether one letter added, dropped, changed, or two neighbours swapped make the one word of the other.

    >>> [one_edit("redis", other) for other in ("reedis", "reids", "radio")]
    [True, True, False]
    """
    common = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    left, right = left[common:], right[common:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return swapped or left[1:] == right[1:] or left[1:] == right or left == right[1:]
