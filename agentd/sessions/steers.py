"""What the user says while a run goes on: steers are said in it, in the order in which they were sent."""

from agentd.protocol.events import DurableEvent, MessageEnd, MessageStart
from agentd.protocol.messages import UserMessage
from agentd.sessions.ground import Ground
from agentd.sessions.user_words import UserWords


class Steers:
    """The steers of one run, and which prompt was said last in it: to that one, changes of files belong."""

    def __init__(self, ground: Ground, prompt_id: str, words: UserWords) -> None:
        self._queue = ground.queue
        self._sources = ground.house.sources
        self._words = words
        self._prompts: dict[str, str] = {}  # messages that say a steer -> its prompt
        self.said = prompt_id

    async def next(self) -> UserMessage | None:
        """The next message that the user wants said in this run."""
        queue = self._queue
        while (steer := queue.waiting_steer()) is not None:
            message_id = self._sources.new_id("m")
            words = await self._words.of_steer(message_id, steer.prompt)
            if queue.waiting_steer() == steer:  # and not another one that was put in front meanwhile
                queue.take_steer()
                words.said()
                self._prompts[message_id] = steer.prompt_id
                return UserMessage(
                    message_id=message_id,
                    content=steer.prompt,
                    timestamp=self._sources.now(),
                    shown=words.shown,
                )
        queue.take_steer()
        return None

    def say(self, event: DurableEvent) -> str | None:
        """The prompt of the steer that this event says, which is the last one said from then on."""
        if not isinstance(event, MessageStart | MessageEnd):
            return None
        prompt_id = self._prompts.get(event.message.message_id)
        if prompt_id is not None:
            self.said = prompt_id
        return prompt_id
