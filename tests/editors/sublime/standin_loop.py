"""The two threads of Sublime Text on which plugins run: the main one, and that of `set_timeout_async`."""

import heapq
import itertools
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

Callback = Callable[[], object]


class Loop:
    """A thread that runs callbacks when they are due: those of one delay in the order they were added."""

    def __init__(self, name: str) -> None:
        self._due: list[tuple[float, int, Callback]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def later(self, callback: Callback, delay: float = 0) -> None:
        """Run a callback after so many milliseconds."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + delay / 1000, next(self._numbers), callback))
            self._changed.notify()

    def do(self, function: Callable[[], Any]) -> Any:
        """Run a function in this thread now, and wait for what it gives."""
        if threading.current_thread() is self._thread:
            return function()
        done = threading.Event()
        result: list[Any] = []

        def run() -> None:
            try:
                result.append(function())
            finally:
                done.set()

        self.later(run)
        done.wait()
        return result[0] if result else None

    def _next(self) -> Callback:
        with self._changed:
            while True:
                if self._due and self._due[0][0] <= time.monotonic():
                    return heapq.heappop(self._due)[2]
                self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)

    def _run(self) -> None:
        while True:
            try:
                self._next()()
            except Exception:  # as the console of the editor shows it, and the editor goes on
                traceback.print_exc()


main = Loop("main")
other = Loop("async")
