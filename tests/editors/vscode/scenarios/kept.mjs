import { join } from "node:path";
import { inNewest } from "../driver/scenario.mjs";

inNewest("after a reload a command's output has its colours, and what sub-agents did can be read", async (stage) => {
  stage.configure({ mode: "full" });
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Paint it, and have it looked at.");
  const first = await stage.model.asked();
  first.calls("bash", { command: "printf '\\033[31mred\\033[0m and plain\\n'" });
  first.calls("task", { tasks: [{ description: "look at it", prompt: "LOOK-HERE" }] }).ends("I do.");
  (await stage.model.asked()).ends("The child has looked.");
  (await stage.model.asked()).ends("All done.");
  await chat.idle();
  await window.reload();
  const again = await window.chat();
  await again.shows("All done.");
  const card = again.log.getByRole("group", { name: /^printf/ }).getByRole("button").first();
  if ((await card.getAttribute("aria-expanded")) === "false") await card.click();
  await again.log.locator(".ansi-red", { hasText: "red" }).waitFor();
  const tasks = again.log.getByRole("group", { name: /^Sub-agent: / }).getByRole("button").first();
  if ((await tasks.getAttribute("aria-expanded")) === "false") await tasks.click();
  await again.log.getByRole("group", { name: "Sub-agent look at it, done" }).getByRole("button").first().click();
  await again.log.getByText("LOOK-HERE").waitFor();
  await again.log.getByRole("group", { name: "Sub-agent look at it, done" }).getByText("The child has looked.").waitFor();
  await window.page.screenshot({ path: join(stage.folder, "kept.png") });
});
