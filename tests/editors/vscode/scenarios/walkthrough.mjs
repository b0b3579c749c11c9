import { join } from "node:path";
import { scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

const QUICK_INPUT = ".quick-input-widget";

scenario("the walkthrough leads from the first start to the first prompt, and each of its links does what it says", async (stage) => {
  stage.configure({ model: "" });
  const window = await stage.open({ settings: { "workbench.colorTheme": "Default Dark Modern", "workbench.secondarySideBar.defaultVisibility": "hidden" } });
  const { page } = window;
  await page.setViewportSize({ width: 1500, height: 900 }); // narrow, what stands beside the steps is left out
  const chat = await window.chat({ ready: false });
  await window.command("agentd: Get Started");
  const walk = page.locator(".gettingStartedContainer");
  const step = (title) => walk.locator(".getting-started-step", { hasText: title });
  const picture = (name) => page.screenshot({ path: join(stage.folder, `${name}.png`) });
  /** Opens a step where it is closed, and waits until what stands beside it is there. */
  const opened = async (title, beside, name) => {
    await until(`the step ${title} is open`, async () => {
      if (/\bexpanded\b/.test(await step(title).getAttribute("class"))) return true;
      await step(title).click({ timeout: 2000 });
      return false;
    });
    await walk.locator("iframe").contentFrame().locator("#active-frame").contentFrame().getByRole("heading", { name: beside }).waitFor();
    await picture(name);
  };
  await opened("Have agentd on this machine", "Where it goes", "1-install");
  await step("Have agentd on this machine").locator(".codicon-getting-started-step-checked").waitFor();
  await opened("Watch it work", "What you will see", "2-demo");
  await step("Watch it work").getByRole("button", { name: "Try the demonstration" }).click();
  await chat.shows("repair it");
  await until("the demonstration has ended", async () => {
    const ask = chat.permission.getByRole("button", { name: "Allow once" }).first();
    if (await ask.isVisible()) await ask.click({ timeout: 1000 }).catch(() => undefined);
    return (await chat.text()).includes("all five tests pass");
  }, { seen: () => chat.text() });
  await chat.idle();
  await picture("3-demo-ended");
  await window.command("agentd: Get Started");
  await step("Watch it work").locator(".codicon-getting-started-step-checked").waitFor();
  await opened("Bring a model", "Keys", "4-model");
  for (const [link, asks] of [["Set an API key", "live"], ["Choose the model", "live/live"]]) {
    await step("Bring a model").getByRole("button", { name: link }).or(step("Bring a model").getByRole("link", { name: link })).click();
    await page.locator(`${QUICK_INPUT} .monaco-list-row`, { hasText: asks }).first().waitFor();
    await picture(`4-${link.replaceAll(" ", "-")}`);
    await page.keyboard.press("Escape");
    await page.locator(QUICK_INPUT).waitFor({ state: "hidden" });
  }
  await opened("Ask for something", "In the chat", "5-ask");
  await step("Ask for something").getByRole("button", { name: "Open the chat" }).click();
  await until("the prompt box has the focus", () => chat.prompt.evaluate((box) => box === document.activeElement));
  const missing = await page.locator(".notification-toast", { hasText: "not found" }).count();
  expect(missing === 0, "a command of the walkthrough is not there");
});
