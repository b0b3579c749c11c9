"""What the user is told once in a session, however often it comes up."""

from typing import Literal

from agentd.agent.instructions import Instructions
from agentd.protocol.events import Notice
from agentd.sessions.ground import Ground
from agentd.workspace.skills import Skills


class Notices:
    """Tells such things as a word of one run."""

    def __init__(self, ground: Ground, prompt_id: str) -> None:
        self._ground = ground
        self._prompt_id = prompt_id

    def tell_once(self, message: str, severity: Literal["info", "warning"] = "info") -> None:
        """Tell the user something that is so for all of the session."""
        if message not in self._ground.told:
            self._ground.told.add(message)
            self._ground.log.record(Notice(severity=severity, message=message), self._prompt_id)

    def of_instructions(self, instructions: Instructions, *, trusted: bool) -> None:
        """A word on instructions that are not heeded, once for each."""
        for problem in instructions.problems:
            self.tell_once(problem, "warning")
        if instructions.projects and not trusted:
            names = ", ".join(file.name for file in instructions.projects)
            self.tell_once(f"{names}: not heeded, as the workspace is not trusted.")

    def of_skills(self, skills: Skills, *, trusted: bool) -> None:
        """A word on skills that cannot be loaded, once for each."""
        for problem in skills.problems(trusted=trusted):
            self.tell_once(problem.message, "info" if problem.severity == "info" else "warning")
