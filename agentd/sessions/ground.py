"""What all runs of a session stand on."""

from dataclasses import dataclass, field
from pathlib import Path

from agentd.agent.images import SessionImages
from agentd.agent.prompt_cut import PromptWatch
from agentd.sessions.family import Family
from agentd.sessions.findings import SessionFindings
from agentd.sessions.house import House
from agentd.sessions.log import SessionLog
from agentd.sessions.questions import Questions
from agentd.sessions.queue import PromptQueue
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.seen import SeenFiles
from agentd.workspace.shell import Shell


@dataclass(frozen=True)
class Ground:
    """What all runs of a session stand on.

    `seen` is what the model has seen of files, `shell` what its commands have left, `checkpoints` what files
    were before, `findings` what its reviews found, `family` whose child the session is and how it gets its
    own.
    """

    root: Path
    log: SessionLog
    house: House
    questions: Questions
    shell: Shell
    prompt_watch: PromptWatch
    queue: PromptQueue
    checkpoints: Checkpoints
    findings: SessionFindings
    family: Family = field(default_factory=Family)
    seen: SeenFiles = field(default_factory=SeenFiles)
    images: SessionImages = field(default_factory=SessionImages)
    told: set[str] = field(default_factory=set)
