"""What is said of a failure on the command line: a sentence for people, without what only programs use."""

import errno
import os
import re

from agentd.protocol.errors import RpcError
from agentd.protocol.text import visible

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""What keeps a stream from being written; such an error names no file."""
_PLACE = re.compile(r"/[^\s:]*: ")
"""Where in a request something is wrong, which means nothing to whoever typed a command."""


def is_unwritable(error: OSError) -> bool:
    """Whether what failed is the writing to stdout."""
    return error.errno in _UNWRITABLE and error.filename is None


def is_nowhere(error: Exception) -> bool:
    """Whether what failed is that we stand in a folder that was removed."""
    return isinstance(error, FileNotFoundError) and error.filename in (None, ".") and not _stands_somewhere()


def _stands_somewhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def in_words(error: Exception) -> str:
    """What went wrong, and the way out where there is one."""
    if isinstance(error, RpcError):
        place = _PLACE.match(error.message) if error.kind == "invalidParams" else None
        said = error.message[place.end() :] if place is not None else error.message
        return f"{said} {error.hint}" if error.hint else said
    if is_nowhere(error):
        return "The folder that you stand in does not exist any more; go to another one."
    if isinstance(error, OSError) and is_unwritable(error):
        return f"what it says could not be written: {error.strerror}."
    if isinstance(error, OSError) and error.strerror:
        file = "" if error.filename is None else f"{visible(os.fsdecode(error.filename), kept='')}: "
        return f"{file}{error.strerror}."
    return str(error)
