"""Takes pictures of the extension in a real VS Code: those here, and those of its own README.

    python .assets/capture_vscode.py

`tests/editors/fetch vscode-1.139 drive chromium` gets what it needs.
"""

import shutil
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from editors.workbench import VERSIONS, Drive, Kit, Server

HERE = Path(__file__).resolve().parent
OF_ITS_OWN = HERE.parent / "editors" / "vscode" / "media" / "pictures"
PICTURES = {
    "vscode.png": HERE,
    "vscode-review.png": HERE,
    "question.png": OF_ITS_OWN,
    "changes.png": OF_ITS_OWN,
}


def main() -> None:
    """Take the pictures."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pictures-")))
        kit = Kit.fetched()
        server = stack.enter_context(closing(Server(VERSIONS[-1], kit, place / "server", lean=True)))
        drive = stack.enter_context(closing(Drive(kit, place, server=server.places, scale=2)))
        folder = Path(tempfile.gettempdir(), "demo")  # it is seen in the pictures
        folder.mkdir()
        stack.callback(shutil.rmtree, folder)
        drive.play("../../../../.assets/capture_vscode.mjs", "pictures", folder)
        OF_ITS_OWN.mkdir(exist_ok=True)
        for name, place in PICTURES.items():
            shutil.copy(folder / name, place / name)


if __name__ == "__main__":
    main()
