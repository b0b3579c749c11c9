/** What `vscode.py` measures, played by the driver of the tests (tests/editors/vscode/driver). */
import { scenario } from "../editors/vscode/driver/scenario.mjs";
import { until } from "../editors/vscode/driver/until.mjs";

const UPDATES = 5000;
const WORDS = ["The ", "quick ", "**brown** ", "fox ", "jumps ", "over ", "`the` ", "lazy ", "dog.\n\n"];

const LONG = { pieces: 400, words: "The quick **brown** fox jumps over `the` lazy dog. ", repeated: 48 };

/** Milliseconds that the renderer has worked for a page so far. */
async function worked(page) {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  const read = async () => {
    const { metrics } = await client.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  };
  return read;
}

scenario("open", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat(); // the window comes back with the view in front
  const begun = performance.now();
  await window.page.reload();
  const workbench = window.page.locator(".monaco-workbench .part.statusbar").waitFor()
    .then(() => performance.now() - begun);
  await chat.prompt.waitFor();
  const prompt = performance.now() - begun;
  await chat.prompt.fill("x");
  await until("a prompt can be sent", () => chat.button("Send").isEnabled());
  return { workbench: await workbench, prompt, interactive: performance.now() - begun };
});

scenario("updates", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Talk.");
  const turn = await stage.model.asked();
  turn.says("It begins. ");
  await chat.shows("It begins.");
  const read = await worked(window.page);
  const before = await read();
  for (let at = 0; at < UPDATES; at += 1) turn.says(WORDS[at % WORDS.length]);
  turn.ends("And it ends.");
  await chat.shows("And it ends.");
  const view = (await read()) - before;
  return { view, floor: await floor(window.page, UPDATES), updates: UPDATES };
});

scenario("a million characters", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Talk at length.");
  const turn = await stage.model.asked();
  turn.says("It begins. ");
  await chat.shows("It begins.");
  const pieces = Array.from({ length: LONG.pieces }, (_, at) => `${LONG.words.repeat(LONG.repeated)}\n\nThat was part ${at}.\n\n`);
  const read = await worked(window.page);
  const before = await read();
  for (const each of pieces) turn.says(each);
  turn.ends("And it ends.");
  await chat.shows("And it ends.");
  const view = (await read()) - before;
  return { view, floor: await paragraphs(window.page, pieces), updates: pieces.length };
});

/** The same pieces in a page that adds each as a paragraph: less than that no view can do that shows them. */
async function paragraphs(beside, pieces) {
  const page = await beside.context().newPage();
  await page.goto("about:blank");
  const read = await worked(page);
  const before = await read();
  await page.evaluate(async (all) => {
    for (const each of all) {
      document.body.appendChild(document.createElement("p")).append(each);
      scrollTo(0, document.body.scrollHeight);
      await new Promise((frame) => requestAnimationFrame(frame));
    }
  }, pieces);
  const spent = (await read()) - before;
  await page.close();
  return spent;
}

/** The same words in a page that appends each to one text, as many for each frame as a fast model says. */
async function floor(beside, updates) {
  const page = await beside.context().newPage();
  await page.goto("about:blank");
  const read = await worked(page);
  const before = await read();
  await page.evaluate(async ([words, count]) => {
    const text = document.body.appendChild(document.createElement("pre")).appendChild(new Text(""));
    for (let at = 0; at < count; at += 1) {
      text.appendData(words[at % words.length]);
      if (at % 8 === 7) await new Promise((frame) => requestAnimationFrame(frame));
    }
  }, [WORDS, updates]);
  const spent = (await read()) - before;
  await page.close();
  return spent;
}

scenario("long session", async (stage) => {
  const { workspace, title, last, messages } = JSON.parse(process.env.AGENTD_LONG_SESSION);
  const window = await stage.open({ workspace });
  const chat = await window.chat();
  await chat.frame.getByRole("combobox", { name: "Session" }).click();
  const begun = performance.now();
  await chat.frame.getByRole("list", { name: "Sessions" }).getByText(title).first().click();
  await chat.shows(last);
  const view = performance.now() - begun;
  const page = await window.page.context().newPage();
  await page.goto("about:blank");
  const begunFloor = performance.now();
  await page.evaluate(([text, count]) => {
    document.body.innerHTML = Array(count).fill(`<p>${text}</p>`).join("");
    return document.body.offsetHeight;
  }, [last, messages]);
  const plain = performance.now() - begunFloor;
  await page.close();
  return { view, floor: plain };
});
