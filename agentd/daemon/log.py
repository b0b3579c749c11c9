"""The log on stderr: one line each, without secrets, and never in anybody's way.

An editor that does not read stderr must not stop the daemon, so a thread of its own writes, and what it
cannot write for long is dropped, oldest first, with a word on how much.
"""

import functools
import logging
import sys
import threading
from collections import deque
from types import TracebackType

from agentd.config.secrets import Secrets
from agentd.daemon.descriptors import write_all

_log = logging.getLogger(__name__)

_MAX_LINES = 1000
_STDERR = 2
_FLUSH_SECONDS = 0.2


class StderrLog(logging.Handler):
    """Writes to stderr from a daemon thread."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._secrets = secrets
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_idle = True
        self._is_lost = False
        threading.Thread(target=self._write_all, name="stderr", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record."""
        line = self._secrets.redact(self.format(record)) + "\n"
        with self._changed:
            if self._is_lost:
                return
            self._lines.append(line)
            if len(self._lines) > _MAX_LINES:
                self._lines.popleft()
                self._dropped += 1
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is written, but not for long."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_lost or (self._is_idle and not self._lines), _FLUSH_SECONDS
            )

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._is_idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._lines))
                self._is_idle = False
                text = "".join(self._lines)
                if self._dropped:
                    text = f"({self._dropped} lines of the log were dropped)\n{text}"
                self._lines.clear()
                self._dropped = 0
            try:
                write_all(_STDERR, text.encode(errors="replace"))
            except OSError:  # stderr is closed: there is nobody to tell
                with self._changed:
                    self._is_lost = True
                    self._changed.notify_all()
                return


def set_up_log(secrets: Secrets, level: str) -> StderrLog:
    """Send all logs to stderr; `level` is a name that `logging` knows, WARNING where it does not."""
    log = StderrLog(secrets)
    known = level.upper() in logging.getLevelNamesMapping()
    logging.basicConfig(level=level.upper() if known else "WARNING", handlers=[log])
    _catch_strays()
    for chatty in ("pygls", "httpx", "httpcore", "asyncio"):  # they log whole payloads
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return log


def _catch_strays() -> None:
    """Errors that nobody catches would write their traceback, and what stands in it, past us to stderr."""

    def uncaught(
        where: str, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is SystemExit:
            return
        details = (kind, error, trace) if error is not None else None
        _log.critical("uncaught in %s: %s", where, kind.__name__, exc_info=details)

    sys.excepthook = functools.partial(uncaught, "the daemon")
    threading.excepthook = lambda stray: uncaught(
        f"thread {stray.thread.name if stray.thread else '?'}",
        stray.exc_type,
        stray.exc_value,
        stray.exc_traceback,
    )
    sys.unraisablehook = lambda stray: uncaught(
        f"{stray.err_msg or 'a finalizer'}", stray.exc_type, stray.exc_value, stray.exc_traceback
    )
