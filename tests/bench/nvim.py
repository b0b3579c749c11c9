"""What the Neovim plugin takes to draw a streaming answer, in each Neovim that `tests/editors/fetch` has got.

The floor, in the same process, is one bare `nvim_buf_set_text` for each of the same deltas.
"""

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
CACHE = Path(
    os.environ.get("EDITORS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentd-editors"
)
ROW = "{:>8} {:>10} {:>10} {:>10} {:>10} {:>10}"


def main() -> None:
    """Print the table."""
    print("5,000 deltas, each drawn by itself; milliseconds a draw")
    print(ROW.format("Neovim", "median", "p99", "all", "floor, all", "agentd is"))
    for editor in sorted(CACHE.glob("nvim-*/start")):
        command = [str(editor), "--clean", "-l", str(HERE / "nvim_draw.lua"), str(REPOSITORY)]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        told = json.loads(ran.stdout)
        floor, plugin = told["floor"], told["plugin"]
        ratio = f"{plugin['sum'] / floor['sum']:.1f} x"
        figures = [f"{plugin[name]:.3f}" for name in ("median", "p99", "sum")]
        print(ROW.format(told["version"].split("+")[0], *figures, f"{floor['sum']:.3f}", ratio))


if __name__ == "__main__":
    main()
