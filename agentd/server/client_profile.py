"""What kind of editor the client is: what it announces, and what it does not announce but does.

The second part is `QUIRKS`, the one table by client name. A fact stands there only where no capability of LSP
tells it. What differs between editors in answering edits needs none, as `editor.py` believes what its text
shows and no answer; but for those that show it seconds later (`tells_late`).
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Quirks:
    """What an editor does that it announces nowhere.

    `reloads_files`: a file that is shown and has changed on disk is shown anew. Where that is not so, each
    answer is shown under a name of its own.
    `leaves_open_behind`: told to show a document, it says that it did, but one that is open already stays
    behind the one that the user is at, unless a place in it is named. So a message tells of an answer in it,
    and what the user has asked to see gets a place.
    `long_messages`: a message of several lines can be read. Where it cannot, only its first line is sent.
    `cursor_is_selection`: where nothing is selected, the character under the cursor is told as the selection.
    `empties_created`: told to create a file, it empties one that is there by then, or creates none at all.
    `progress_is_a_line`: of progress it shows one line, which the next report replaces: it can be told what
    the model writes as it writes it. Others may keep each report, or show it in the user's way.
    `tells_late`: it makes every edit, with no look at versions, and tells of it, as of what is typed, seconds
    later or once the user is there. It tells before it answers a message that has no choices, so one is shown
    before each edit; and its word that it made the edit counts until it tells.
    `tells_when_still`: it tells of changes, its own edits too, once nothing has been typed for a moment,
    however long that takes. So its silence after it said that it made an edit proves nothing yet.
    `tells_twice`: what was typed before it took a registration of documents it tells in `didOpen` and once
    more as a change. So documents are announced to it.
    `counts_characters`: within a line it counts characters, and no units of the agreed encoding. So it is
    asked for whole documents, and given whole lines.
    """

    reloads_files: bool = False
    leaves_open_behind: bool = False
    long_messages: bool = True
    cursor_is_selection: bool = False
    empties_created: bool = False
    progress_is_a_line: bool = False
    tells_late: bool = False
    tells_when_still: bool = False
    tells_twice: bool = False
    counts_characters: bool = False


QUIRKS: dict[str, Quirks] = {
    "Visual Studio Code": Quirks(reloads_files=True),
    "helix": Quirks(  # one status line
        long_messages=False, cursor_is_selection=True, progress_is_a_line=True
    ),
    "Eglot": Quirks(progress_is_a_line=True),  # in the mode line
    "Neovim": Quirks(empties_created=True),
    "Sublime Text LSP": Quirks(  # messages in the status bar
        reloads_files=True,
        leaves_open_behind=True,
        long_messages=False,
        progress_is_a_line=True,
        tells_when_still=True,
        tells_twice=True,
    ),
    "Zed": Quirks(reloads_files=True, progress_is_a_line=True),
    "vim-lsp": Quirks(long_messages=False, progress_is_a_line=True, tells_late=True, counts_characters=True),
}
"""By `clientInfo.name`."""

_OF_FORKS = {
    "code-server": "Visual Studio Code",
    "VSCodium": "Visual Studio Code",
    "Code - OSS": "Visual Studio Code",
    "Zed Preview": "Zed",
    "Zed Nightly": "Zed",
    "Zed Dev": "Zed",
}


@dataclass(frozen=True)
class ClientProfile:
    """The client as `initialize` describes it.

    `progress`: it lets us create progress of our own. `shows_documents`: it opens a file when asked to.
    `has_menu`: it asks for code actions.
    `action_literals`: it takes code actions, and not only commands, as the answer to `codeAction`.
    """

    name: str = ""
    progress: bool = False
    shows_documents: bool = False
    has_menu: bool = False
    action_literals: bool = False
    quirks: Quirks = Quirks()

    @staticmethod
    def of(capabilities: dict[str, Any], client_info: Any) -> "ClientProfile":
        """From the params of `initialize`; what is of another form than LSP's counts as not said."""
        return ClientProfile(
            name=_name_in(client_info),
            progress=_at(capabilities, "window", "workDoneProgress") is True,
            shows_documents=_at(capabilities, "window", "showDocument", "support") is True,
            has_menu=isinstance(_at(capabilities, "textDocument", "codeAction"), dict),
            action_literals=isinstance(
                _at(capabilities, "textDocument", "codeAction", "codeActionLiteralSupport"), dict
            ),
            quirks=quirks_of(client_info),
        )


def quirks_of(client_info: Any) -> Quirks:
    """Those of the client that `clientInfo` of `initialize` names."""
    name = _name_in(client_info)
    return QUIRKS.get(_OF_FORKS.get(name, name), Quirks())


def _name_in(client_info: Any) -> str:
    name = _at(client_info, "name")
    return name if isinstance(name, str) else ""


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
