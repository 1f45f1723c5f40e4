"""More detectors of secrets, where the package of the extra `graphmem[secrets]` is installed.

detect-secrets (Yelp, Apache-2.0) takes 0.4 ms a line and seconds for a megabyte of uniform text, so it looks at short
pieces, and in a scan of what is stored alone. Of its plug-ins those are used that know a token by its form. Those that
go by keywords and by entropy are left out: hashes, ids and prose about passwords are most of what they find.
"""

import contextlib
import importlib.util
import threading
from collections.abc import Callable, Iterator

from graphmem.core.secret_forms import Secret

PIECE = 4096  # characters
_OVERLAP = 256
_PLUG_INS = (
    "ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "CloudantDetector", "DiscordBotTokenDetector",
    "GitHubTokenDetector", "GitLabTokenDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "JwtTokenDetector",
    "MailchimpDetector", "NpmDetector", "OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector",
    "SendGridDetector", "SlackDetector", "SoftlayerDetector", "SquareOAuthDetector", "StripeDetector",
    "TelegramBotTokenDetector", "TwilioKeyDetector",
)  # fmt: skip


@contextlib.contextmanager
def detecting() -> Iterator[Callable[[str], Iterator[Secret]] | None]:
    """Yield what finds secrets in a text, piece by piece; None where the package is not there."""
    if importlib.util.find_spec("detect_secrets") is None:
        yield None
        return
    from detect_secrets.settings import transient_settings

    # The plug-ins are chosen for the whole process, which takes ten times as long as a look at a text.
    with _CHOOSING, transient_settings({"plugins_used": [{"name": name} for name in _PLUG_INS]}):
        yield _found


_CHOOSING = threading.RLock()


def _found(text: str) -> Iterator[Secret]:
    from detect_secrets.core.scan import scan_line

    for begin in range(0, max(1, len(text) - _OVERLAP), PIECE - _OVERLAP):
        piece = text[begin : begin + PIECE]
        for line in piece.splitlines():
            for secret in scan_line(line):
                value = secret.secret_value or ""
                place = piece.find(value) if value else -1
                while place >= 0:
                    yield Secret(secret.type, begin + place, begin + place + len(value))
                    place = piece.find(value, place + len(value))
