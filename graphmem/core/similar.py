"""Names that may mean one thing: how alike two are, which pairs are, and which of them no machine may join.

Alike are the sets of their character bigrams: Jaccard, what both have of what either has. Pairs are found by blocking:
of each name only its rarest bigrams are posted, as many as a pair above the threshold has to share one of, and names
whose digits differ never meet. So no name is compared with all others. See Bayardo, Ma, Srikant: Scaling up all pairs
similarity search (2007).
"""

import itertools
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import regex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROUNDING = 1e-9
_CELLS = 1 << 18  # compared at once: what a processor's cache holds
_SMALL = 64  # blocks up to this size are compared many at once
_FIRST = 0.85
# Pairs looked at one by one: some seconds. Only where very many names are alike there are more, as of one mail domain.
_LOOKED_AT = 1_000_000

_DIGITS = re.compile(r"\d+")
_NUMERALS = regex.compile(r"[\d〇零一二三四五六七八九十百千万两]+")
# An ideograph is a word of its own, since nothing parts the words of a Chinese name.
_WORD = regex.compile(r"\p{Han}|[[^\W_]--\p{Han}]+", regex.VERSION1)
# Words that number things: those with a digit, single letters, Roman numerals.
_CODE = re.compile(r".*\d.*|[a-z]|[ivx]+")

# Titles and roles that stand before a name. Few on purpose: a pair that is missed can still be merged by hand, one that
# is offered wrongly costs a look at each review. No word is in both lists of a language, so a title has one reading.
_FIELDS_ZH = """
    高级 资深 首席 副 总 产品 项目 技术 研发 开发 前端 后端 测试 运维 运营 市场 销售 人事 财务 行政 客服 平面 算法 数据
    软件 硬件
"""
_ROLES_ZH = """
    经理 总监 主管 主任 组长 队长 班长 部长 处长 局长 院长 校长 总裁 董事长 秘书 助理 工程师 架构师 设计师 分析师 程序员
    会计 律师 医生 医师 护士 老师 教师 教练 教授 博士 导师 师傅 司机 同学 同事 老板 客户
"""
_FIELDS_EN = """
    senior junior chief vice deputy product project program general sales marketing account software hardware data
    systems test
"""
_ROLES_EN = """
    mr mrs ms miss mx dr prof professor doctor sir engineer architect designer analyst developer manager director
    president captain coach teacher nurse lawyer boss lead assistant colleague client
"""


def _either(words: str) -> str:
    return "|".join(words.split())


_TITLES = re.compile(
    rf"(?:(?:{_either(_FIELDS_ZH)})*(?:{_either(_ROLES_ZH)})[\s:·]*"
    rf"|(?:(?:{_either(_FIELDS_EN)})\s)*(?:{_either(_ROLES_EN)})(?:[.:]\s?|\s))+"
)


class Alike(NamedTuple):
    """Two names of an index, by their places, the smaller first, and how alike they are."""

    first: int
    second: int
    similarity: float


@dataclass(frozen=True, slots=True)
class NameIndex:
    """Names, made ready to be compared: an array cell or row for each.

    starts: where the bigrams of a name begin in `bigrams`, with one end more. bigrams: numbers of bigrams, each name's
    rarest first; names whose digits differ share none. sizes: how many a name has. bits: its bigrams, hashed to 64
    bits in two ways.
    """

    keys: Sequence[str]
    starts: "NDArray[np.int64]"
    bigrams: "NDArray[np.int64]"
    sizes: "NDArray[np.int64]"
    bits: "NDArray[np.uint64]"


def bigram_similarity(a: str, b: str) -> float:
    """Return how alike two canonical names are, 0 to 1: Jaccard of their sets of character bigrams.

    >>> bigram_similarity("cam-a1", "cam-a1r")
    0.8333333333333334
    >>> bigram_similarity("小王", "小王子")
    0.5
    >>> bigram_similarity("c", "c"), bigram_similarity("c", "c+")
    (1.0, 0.0)
    """
    if a == b:
        return 1.0
    ours, theirs = _bigrams(a), _bigrams(b)
    if not ours or not theirs:
        return 0.0
    shared = len(ours & theirs)
    return shared / (len(ours) + len(theirs) - shared)


def _bigrams(key: str) -> set[str]:
    return {a + b for a, b in itertools.pairwise(key)}


def machine_may_merge(a: str, b: str) -> bool:
    """Tell whether no more than the spelling of two canonical names differs, so that a machine may decide.

    Numbers, codes and what stands at the end tell things apart that are named alike: there only a person may.

    >>> machine_may_merge("rx4070", "rx4080"), machine_may_merge("v1.2", "v1.20"), machine_may_merge("三班", "十三班")
    (False, False, False)
    >>> machine_may_merge("cam-a1", "cam-a1r"), machine_may_merge("web-east", "web-west")
    (False, False)
    >>> machine_may_merge("小王", "小王子"), machine_may_merge("plan a of may", "plan b of may")
    (False, False)
    >>> machine_may_merge("home assistant", "homeassistant"), machine_may_merge("jon smith", "john smith")
    (True, True)
    """
    if a == b:
        return True
    if _NUMERALS.findall(a) != _NUMERALS.findall(b) or a.startswith(b) or b.startswith(a):
        return False
    ours, theirs = _WORD.findall(a), _WORD.findall(b)
    if sorted(filter(_CODE.fullmatch, ours)) != sorted(filter(_CODE.fullmatch, theirs)):
        return False
    return ours == theirs or len(ours) < 2 or ours[:-1] != theirs[:-1]


def titled(a: str, b: str) -> bool:
    """Tell whether one canonical name is the whole other one behind a title.

    >>> titled("小王", "产品经理小王"), titled("小王", "小王子"), titled("smith", "dr. smith")
    (True, False, True)
    >>> titled("ake", "drake"), titled("经理", "产品经理"), titled("助理", "经理助理")
    (False, False, False)
    """
    name, longer = sorted((a, b), key=len)
    return longer.endswith(name) and _has_title(longer, len(longer) - len(name))


def _has_title(key: str, end: int) -> bool:
    """Tell whether a name follows a title that ends there; a title behind a title names nobody."""
    name = key[end:]
    return len(name) > 1 and bool(_TITLES.fullmatch(key, 0, end)) and not _TITLES.fullmatch(name + " ")


def titled_pairs(keys: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of distinct names, the smaller first, of which one is the other behind a title.

    >>> titled_pairs(["小王子", "产品经理小王", "小王"])
    [(1, 2)]
    """
    places = {key: place for place, key in enumerate(keys)}
    return [
        (min(place, places[key[end:]]), max(place, places[key[end:]]))
        for place, key in enumerate(keys)
        if _TITLES.match(key)
        for end in range(1, len(key))
        if key[end:] in places and _has_title(key, end)
    ]


def index_names(keys: Sequence[str]) -> NameIndex:
    """Make distinct canonical names ready to be compared."""
    import numpy as np  # takes 60 ms: only who looks for pairs pays it

    numbers: dict[str, int] = {}
    digits: dict[tuple[str, ...], int] = {}
    flat, lengths, groups = array("q"), array("q"), array("q")
    for key in keys:
        found = {numbers.setdefault(bigram, len(numbers)) for bigram in _bigrams(key)}
        flat.extend(found)
        lengths.append(len(found))
        groups.append(digits.setdefault(tuple(_DIGITS.findall(key)), len(digits)))
    sizes = np.array(lengths, np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    codes = np.repeat(np.array(groups, np.int64), sizes) * len(numbers) + np.array(flat, np.int64)
    _, bigrams, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rows = np.repeat(np.arange(len(keys)), sizes)
    bigrams = bigrams[np.lexsort((bigrams, counts[bigrams], rows))]
    bits = np.zeros((len(keys), 2), np.uint64)
    hashed = bigrams.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for word, shift in enumerate((58, 52)):
        np.bitwise_or.at(bits[:, word], rows, np.uint64(1) << (hashed >> np.uint64(shift) & np.uint64(63)))
    return NameIndex(keys, starts, bigrams, sizes, bits)


def similar_pairs(
    index: NameIndex,
    *,
    least: float,
    most: int | None = None,
    accept: Callable[[str, str], bool] = lambda a, b: True,
) -> tuple[list[Alike], bool]:
    """Return the pairs of names that are more alike than `least` and accepted, best first, and whether that is all.

    least: at least 0, less than 1. most: of how many pairs the best ones are wanted, None for all. accept: takes two
    names. Names whose digits differ are no pair. Not all is returned where there are more than `most`, nor where
    very many names are alike.
    """
    best: dict[tuple[int, int], float] = {}
    # A high threshold posts few bigrams: where it finds enough, the low one need not be asked.
    left = _LOOKED_AT
    for stage in (_FIRST, least) if most is not None and least < _FIRST else (least,):
        for some in _alike(index, *_prefixes(index, stage), stage):
            best |= {
                (a, b): similarity
                for a, b, similarity in some
                if (a, b) not in best and accept(index.keys[a], index.keys[b])
            }
            if most is not None and len(best) > 2 * most + _SMALL:
                best = best_of(best, most)
            left -= len(some)
            if left < 0:
                break
        if left < 0 or (most is not None and len(best) >= most):
            break
    chosen = best if most is None else best_of(best, most)
    pairs = [Alike(a, b, similarity) for (a, b), similarity in chosen.items()]
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair)), left >= 0 and (most is None or len(best) < most)


def best_of(scores: Mapping[tuple[int, int], float], most: int) -> dict[tuple[int, int], float]:
    """Return the best scored of some pairs, the best one first; of equal ones those that come first in their order.

    >>> best_of({(1, 2): 0.8, (0, 2): 0.8, (0, 1): 0.9}, 2)
    {(0, 1): 0.9, (0, 2): 0.8}
    """
    return dict(sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))[:most])


def similar_within(index: NameIndex, blocks: Iterable[Sequence[int]], *, least: float) -> Iterator[Alike]:
    """Yield the pairs within blocks of places that are more alike than `least`; one of two blocks perhaps twice."""
    import numpy as np

    flat, lengths = array("q"), array("q")
    for block in blocks:
        flat.extend(block)
        lengths.append(len(block))
    counts = np.array(lengths, np.int64)
    for some in _alike(index, np.array(flat, np.int64), np.cumsum(counts) - counts, counts, least):
        yield from some


def _prefixes(index: NameIndex, least: float) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]":
    """Return blocks of names that share one of their rarest bigrams: places, where a block begins, how many it has.

    Of n bigrams a pair more alike than t shares more than t * n, so at least one of any n - floor(t * n).
    """
    import numpy as np

    posted = index.sizes - np.floor(least * index.sizes - _ROUNDING).astype(np.int64)
    rows = np.repeat(np.arange(len(index.sizes)), index.sizes)
    chosen = np.arange(len(index.bigrams)) - index.starts[rows] < posted[rows]
    rows, bigrams = rows[chosen], index.bigrams[chosen]
    order = np.argsort(bigrams, kind="stable")
    _, firsts, counts = np.unique(bigrams[order], return_index=True, return_counts=True)
    return rows[order], firsts, counts


def _alike(
    index: NameIndex,
    rows: "NDArray[np.int64]",
    firsts: "NDArray[np.int64]",
    counts: "NDArray[np.int64]",
    least: float,
) -> Iterator[list[Alike]]:
    """Yield lists of pairs within blocks that are more alike than `least`; a pair of several blocks perhaps in each."""
    import numpy as np

    sets: dict[int, set[int]] = {}

    def bigrams(row: int) -> set[int]:
        found = sets.get(row)
        if found is None:
            found = sets[row] = set(index.bigrams[index.starts[row] : index.starts[row + 1]].tolist())
        return found

    for left, right in _near(index, rows, firsts, counts, least):
        codes = np.unique(np.minimum(left, right) * len(index.keys) + np.maximum(left, right))
        some = []
        for code in codes.tolist():
            a, b = divmod(code, len(index.keys))
            ours, theirs = bigrams(a), bigrams(b)
            shared = len(ours & theirs)
            if shared and (similarity := shared / (len(ours) + len(theirs) - shared)) > least:
                some.append(Alike(a, b, similarity))
        yield some


def _near(
    index: NameIndex,
    rows: "NDArray[np.int64]",
    firsts: "NDArray[np.int64]",
    counts: "NDArray[np.int64]",
    least: float,
) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]":
    """Yield pairs within blocks, as two arrays, of which the hashed bigrams do not tell that they differ too much.

    Of s bigrams in all, a pair more alike than t has fewer than s * (1 - t) / (1 + t) that only one of the two has.
    """
    import numpy as np

    allowed = index.sizes * ((1 - least) / (1 + least))

    def near(left: "NDArray[np.int64]", right: "NDArray[np.int64]") -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        differ = np.bitwise_count(index.bits[left] ^ index.bits[right]).max(axis=1)
        kept = differ <= allowed[left] + allowed[right] + _ROUNDING
        return left[kept], right[kept]

    for count in np.unique(counts[(counts > 1) & (counts <= _SMALL)]).tolist():
        begins = firsts[counts == count]
        ours, theirs = np.triu_indices(count, 1)
        step = max(1, _CELLS // len(ours))
        for start in range(0, len(begins), step):
            blocks = rows[begins[start : start + step, None] + np.arange(count)]
            yield near(blocks[:, ours].ravel(), blocks[:, theirs].ravel())
    # Where many meet, one byte a pair and one of the hashes say most.
    hashed = np.ascontiguousarray(index.bits[:, 0])
    whole = np.minimum(allowed, np.iinfo(np.uint8).max // 2 - 1).astype(np.uint8)
    for first, count in zip(firsts[counts > _SMALL].tolist(), counts[counts > _SMALL].tolist(), strict=True):
        block = rows[first : first + count]
        block = block[np.argsort(index.sizes[block], kind="stable")]
        sizes, bits, bounds = index.sizes[block], hashed[block], whole[block]
        step = max(1, _CELLS // count)
        for start in range(0, count, step):
            # Sizes that differ more are no pair.
            end = np.searchsorted(sizes, sizes[min(start + step, count) - 1] / max(least, _ROUNDING), side="right")
            differ = np.bitwise_count(bits[start : start + step, None] ^ bits[None, start:end])
            ours, theirs = np.nonzero(
                differ <= bounds[start : start + step, None] + bounds[None, start:end] + np.uint8(1)
            )
            once = ours < theirs
            yield near(block[start + ours[once]], block[start + theirs[once]])
