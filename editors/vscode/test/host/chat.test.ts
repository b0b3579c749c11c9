/** What becomes of a first prompt in a mode that cannot be had where agentd runs. */
import { expect, test } from "vitest";
import { chatHandlers } from "../../src/host/chat";
import type { ToView } from "../../src/shared/messages";
import { PlayedDaemon } from "./wire";

test.each([["unsupported", 1], ["invalidParams", 0]])("a session refused as %s has what is possible asked for anew %i times, before the user hears of it", async (kind, times) => {
  const daemon = new PlayedDaemon();
  const posted: ToView[] = [];
  const happened: string[] = [];
  const { prompt } = chatHandlers({
    client: daemon, shown: {} as never, folders: { forNew: "file:///w" } as never, post: (message) => posted.push(message),
    beginning: () => ({ mode: "auto" }), tellFocus: () => undefined,
    unsupported: async () => void happened.push("asked anew"),
  });
  const sent = Promise.resolve(prompt({ promptId: "p", prompt: [] })).catch((error: Error) => void happened.push(error.message));
  const begun = await daemon.next("agentd/session/new");
  expect(begun.params).toEqual({ workspaceUri: "file:///w", mode: "auto" });
  begun.fail(Object.assign(new Error("there is no sandbox"), { data: { kind } }));
  await sent;
  expect(happened).toEqual([...Array<string>(times).fill("asked anew"), "there is no sandbox"]);
  expect(posted).toEqual([]);
});
