"""Which sentence of a user's message looks like a standing setting: who they are, how things are done from now on."""

import re
from collections.abc import Iterator

from graphmem.core import standing_en as english
from graphmem.core import standing_zh as chinese

QUOTED_CHARACTERS = 200
_SHORTEST_SENTENCE = 3
_LONGEST_SENTENCE = 400  # longer ones are prose that was pasted
_FILLER = "\ufffc"

# ---- what are not the user's own words

_LINES = re.compile(
    r"""
      ```.*?(?:```|\Z)
    | ^[ \t]*+(?:
        (?:>|\$[ ]|@@|\+(?!\d)|\||[{<])                                      # quotes, prompts, diffs, tables
      | \[?(?:\d{4}[-/]\d\d?[-/]\d\d?|\d\d:\d\d:\d\d)                      # log lines
      | [^\w\n]{0,3}(?:trace|debug|info|notice|warn|warning|error|fatal|critical|panic|错误|警告|异常|报错|失败)
        [^\w\n]{0,2}[\]:：]
      | at[ ]\S+[ ]?\(|File[ ]"|Traceback|Caused[ ]by|\w*(?:Error|Exception)\b
      )[^\n]*
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""`[^`\n]*`|"[^"\n]*"|“[^“”\n]{0,300}”|‘[^‘’\n]{0,300}’(?!\w)|「[^「」\n]{0,300}」|『[^『』\n]{0,300}』|
    «[^«»\n]{0,300}»|"""
    r"""(?<!\w)'[^'\n]{1,300}'(?!\w)"""
)
# Words to work on, and not to live by.
_WORKED_ON = re.compile(
    r"(?:^|(?<=[.!?。！？]))[ \t]{0,8}+(?:please\s|请|帮我){0,3}+(?:translate|rewrite|rephrase|paraphrase|proofread|"
    r"polish|summari[sz]e|print|echo|output|翻译|改写|润色|校对|总结|朗读|输出|打印)[^:：\n]{0,40}[:：][^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^。！？!?；;\n.]|\.(?!\s|\Z))++[。！？!?；;.]*+")
_CLAUSE = re.compile(r"[,;:，；：—–]+|\s-+\s|\b(?:and|but|so|because)\b")
_OPENING = re.compile(
    r"""(?:[-*•#\s\d.)、]|
        \b(?:and|but|so|also|then|ok|okay|oh|hey|hi|hello|thanks|thank[ ]you|great|btw|by[ ]the[ ]way|please|pls|well|
           yes|right|important|reminder|kindly|(?:do[ ])?try[ ]to|(?:make|be)[ ]sure[ ](?:to|that[ ]you|you))\b[!,.\s]*|
        (?:另外|还有|对了|顺便|顺便说一句|请|請|麻烦|好的|好|嗯|那么|那|但是|不过|所以|然后|注意|重要|谢谢|你要|你|也)
    )+""",
    re.VERBOSE,
)

# Doubt comes round again, so what is to be done in it holds for good.
_IN_DOUBT = re.compile(
    r"(?:if|when|whenever)\s(?:you're\s|you\sare\s|ever\s|something\sis\s)?(?:unsure|not\ssure|uncertain|in\sdoubt|"
    r"unclear)\b|"
    r"(?:如果|有|遇到|当)?(?:你|有)?(?:不确定|没把握|拿不准|不清楚|疑问)(?:的时候|的话|时|的地方)?[，,]?(?:就|先|请|"
    r"要|别|不要)?(?:问|停|告诉|跟我|和我|猜)"
)

# What is told with this is a report, and no setting.
_TROUBLE = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ing)?|crash\w*|blank|broken|exception|segfaults?|stuck|flak\w*|unstable|unreliable|"
    r"hangs?|slow|bug|"
    r"(?:not|n't) work\w*|too (?:much|many|slow|long))\b|"
    r"报错|不稳定|出错|崩溃|空白|打不开|失败|不行|卡住|卡死|没反应|不工作|跑不起来|超时|太慢|太卡"
)


def standing_setting(text: str) -> str:
    """Return the first sentence of a user's message that looks like a standing setting, '' when there is none.

    That is who they are, what they work with, what they prefer, what holds from now on, always or never; in English or
    Chinese. Questions, quotations, code, logs, what is imagined, what others say, and what is meant for now are none.
    At most 200 characters are quoted. Takes time linear in the text.

    >>> standing_setting("谢谢！以后都用中文回答。"), standing_setting("中文怎么配置？")
    ('以后都用中文回答。', '')
    """
    own = _LINES.sub(lambda found: "\n" * len(found.group()), text)
    for hidden in (_QUOTED, _WORKED_ON):
        own = hidden.sub(lambda found: _FILLER * len(found.group()), own)
    own = own.replace("’", "'")
    looked_at: set[str] = set()
    for found in _SENTENCE.finditer(own):
        sentence = found.group()
        if not _SHORTEST_SENTENCE <= len(sentence) <= _LONGEST_SENTENCE or sentence in looked_at:
            continue
        looked_at.add(sentence)
        if _is_standing(sentence):
            said = " ".join(text[found.start() : found.end()].split())
            return said if len(said) <= QUOTED_CHARACTERS else said[: QUOTED_CHARACTERS - 1] + "…"
    return ""


def _is_standing(sentence: str) -> bool:
    """Tell whether a clause of a sentence is a standing setting, and nothing in the sentence speaks against it."""
    said = _unopened(sentence.lower())
    if said.rstrip().endswith(("?", "？")) or _is_question(said):
        return False
    imagined_or_of_others = (english.IMAGINED, chinese.IMAGINED, english.OTHERS, chinese.REPORTED)
    if any(pattern.match(said) for pattern in imagined_or_of_others):
        return False
    if _IN_DOUBT.match(said):
        return True
    said = chinese.CONDITION.sub("", english.CONDITION.sub("", said))
    patterns = _patterns_for(said)
    for clause in _clauses(said):
        if english.REPORTED.search(clause) or chinese.REPORTED.match(clause):
            return False
        if _is_lasting(clause) or any(pattern.match(clause) for pattern in patterns):
            return True
    return False


def _patterns_for(said: str) -> list[re.Pattern[str]]:
    """Return the patterns of standing settings that nothing in the sentence speaks against.

    What is meant for now is no setting at all; a wish about a thing at hand is none for its kind; a report of trouble
    tells of no habit.
    """
    if (
        chinese.MADE.match(said)
        or english.NOT_LASTING.search(said)
        or chinese.NOT_LASTING.search(_without_beginnings(said))
    ):
        return []
    at_hand = bool(english.AT_HAND.search(said) or chinese.AT_HAND.search(said))
    trouble = bool(_TROUBLE.search(said))
    patterns = [english.ASKED, chinese.ASKED]
    if not at_hand:
        patterns += [english.GENERAL, chinese.GENERAL]
    if not trouble:
        patterns += [english.STATED, chinese.STATED]
    if not at_hand and not trouble:
        patterns += [english.HABITUAL, chinese.HABITUAL]
    return patterns


def _clauses(said: str) -> Iterator[str]:
    """Yield the sentence as a whole, then each clause behind the first, without what opens it."""
    yield said
    for border in _CLAUSE.finditer(said):
        yield _unopened(said[border.end() :])


def _unopened(said: str) -> str:
    """Return what is said behind the words that only open it, such as thanks."""
    said = said.lstrip()
    opening = _OPENING.match(said)
    return said[opening.end() :] if opening else said


def _is_lasting(clause: str) -> bool:
    head = _CLAUSE.split(clause, maxsplit=1)[0]
    if chinese.LASTING.match(clause) and not chinese.NOT_LASTING.search(_without_beginnings(head)):
        return True
    found = english.LASTING.search(clause)
    return bool(found) and not re.search(r"\b(?:might|may|could|will|would|plan\w*)\b", clause)


def _without_beginnings(said: str) -> str:
    """Leave out from when something holds: a day that is named there is no day on which it ends."""
    return re.sub(chinese.FROM, "", said)


def _is_question(said: str) -> bool:
    if english.QUESTION.match(said) or chinese.ASKS.match(said):
        return True
    return bool(chinese.QUESTION.search(chinese.NO_QUESTION.sub("", said)))
