"""What graphmem logs, under the name `graphmem` of `logging`.

To load logging takes a tenth of the time in which a command starts, and most commands log nothing that anybody sees.
"""

import functools
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmem.late import late

if TYPE_CHECKING:
    import logging
else:
    logging = late("logging")

_set_up: list[Callable[[], None]] = []
_setting_up = threading.RLock()


def before_the_first(set_up: Callable[[], None]) -> None:
    """Let a program set logging up right before the first warning, not at its start."""
    _set_up[:] = [set_up]


def debug(message: str, *values: object) -> None:
    """Log what is seen only where somebody has set logging up, and so has loaded it."""
    if "logging" in sys.modules and _logger().isEnabledFor(logging.DEBUG):
        _logger().debug(message, *values, stacklevel=2)


def warning(message: str, *values: object) -> None:
    """Log what is seen also where nobody has set logging up."""
    _ready().warning(message, *values, stacklevel=2)


def exception(message: str, *values: object) -> None:
    """Log an error with the traceback of the exception that is being handled."""
    _ready().exception(message, *values, stacklevel=2)


def _ready() -> "logging.Logger":
    with _setting_up:
        while _set_up:
            _set_up.pop()()
    return _logger()


@functools.cache
def _logger() -> "logging.Logger":
    return logging.getLogger("graphmem")
