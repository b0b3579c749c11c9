import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

/** Types into the prompt as a user does, and takes what is offered under a name. */
async function completes(chat, typed, name) {
  await chat.prompt.pressSequentially(typed);
  const option = chat.frame.getByRole("option", { name }).first();
  await option.waitFor();
  await option.click();
}

/** Sends what is in the box. */
async function sends(chat) {
  await until("the prompt can be sent", () => chat.button("Send").isEnabled());
  await chat.prompt.press("Enter");
}

scenario("a file and the selection are completed behind @, and the model is told of them", async (stage) => {
  const window = await stage.open({ files: { "here.txt": "the first line\nthe second line\n", "deep/there.txt": "far\n" } });
  const chat = await window.chat();
  await window.openFile("here.txt");
  await window.cursorAt("here.txt", 2);
  await window.press("Shift+End");
  await completes(chat, "Compare @there", "there.txt");
  await completes(chat, " with @sel", "selection");
  await sends(chat);
  const turn = await stage.model.asked();
  for (const words of ["there.txt", "here.txt", "the second line"]) {
    expect(turn.heard().includes(words), `the model heard nothing of ${words}: ${turn.heard()}`);
  }
  turn.ends("They differ.");
  await chat.shows("They differ.");
});

inNewest("a command is completed behind / and runs by its own words", async (stage) => {
  stage.configure({ trusted: [stage.path()] });
  const text = "---\ndescription: Greet somebody\nargument-hint: NAME\n---\nSay hello to $1 in one word.\n";
  const window = await stage.open({ files: { ".agentd/commands/greet.md": text } });
  const chat = await window.chat();
  await chat.prompt.pressSequentially("/gre");
  await chat.frame.getByRole("option", { name: "greet" }).waitFor();
  await chat.prompt.press("Tab");
  await until("the command stands in the box", async () => (await chat.prompt.inputValue()).startsWith("/greet"));
  await chat.prompt.press("End");
  await chat.prompt.pressSequentially(" Ada");
  await sends(chat);
  const turn = await stage.model.asked();
  expect(turn.heard().includes("Say hello to Ada in one word."), `the model heard ${turn.heard()}`);
  turn.ends("Hello.");
  await chat.shows("Hello.");
});

scenario("an image is pasted, shown and sent to a model that sees", async (stage) => {
  stage.configure({ facts: { images: true } });
  const window = await stage.open();
  const chat = await window.chat();
  await window.front();
  await window.page.evaluate(async () => {
    const canvas = new OffscreenCanvas(3, 2);
    canvas.getContext("2d").fillRect(0, 0, 3, 2);
    await navigator.clipboard.write([new ClipboardItem({ "image/png": await canvas.convertToBlob() })]);
  });
  await chat.prompt.click();
  await chat.prompt.press("Control+V");
  const picture = chat.frame.locator("img.attachment-picture");
  await picture.waitFor();
  expect((await picture.evaluate((image) => image.naturalWidth)) === 3, "another picture is shown");
  await chat.prompt.fill("What is this?");
  await sends(chat);
  const turn = await stage.model.asked();
  const parts = turn.body.messages.findLast(({ role }) => role === "user").content;
  const url = parts.find(({ type }) => type === "image_url")?.image_url.url ?? "";
  expect(url.startsWith("data:image/png;base64,"), `the model was given ${JSON.stringify(parts).slice(0, 300)}`);
  turn.ends("A black box.");
  await chat.shows("A black box.");
});

inNewest("the model and the mode are picked in the view and hold for the next request", async (stage) => {
  stage.configure({ models: ["live", "other"] });
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Who are you?");
  const first = await stage.model.asked();
  expect(first.body.model === "live", `the model is ${first.body.model}`);
  first.ends("The one.");
  await chat.idle();
  await chat.choose("Model", /^other/);
  await chat.choose("Mode", /^Edit/);
  await chat.send("And now? Write it down.");
  const second = await stage.model.asked();
  expect(second.body.model === "other", `the model is ${second.body.model}`);
  second.calls("write_file", { file_path: "who.txt", content: "the other\n" }).ends();
  (await stage.model.asked()).ends("The other.");
  await chat.shows("The other.");
  expect(stage.read("who.txt") === "the other\n", "the file was not written without a question");
});

inNewest("prompts in the queue are edited, moved and removed before they run", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("First.");
  const first = await stage.model.asked();
  first.says("One");
  await chat.shows("One");
  for (const words of ["Wrong.", "Gone.", "Then this."]) {
    await chat.prompt.fill(words);
    await chat.button("Queue").click();
    await chat.queue.getByText(words).waitFor();
  }
  await chat.queue.getByText("Gone.").click();
  await chat.queue.getByRole("textbox", { name: "Queued prompt" }).press("Escape");
  await chat.queue.getByRole("button", { name: "Gone." }).first().press("Delete");
  await chat.queue.getByText("Gone.").waitFor({ state: "hidden" });
  await chat.queue.getByText("Wrong.").click();
  await chat.queue.getByRole("textbox", { name: "Queued prompt" }).fill("Right.");
  await chat.queue.getByRole("button", { name: "Save" }).click();
  await chat.queue.getByText("Right.").waitFor();
  await chat.queue.getByRole("button", { name: "Then this." }).first().press("Alt+ArrowUp");
  await until("the last is the first", async () => (await chat.queue.getByRole("listitem").first().innerText()).includes("Then this."));
  first.ends(".");
  for (const words of ["Then this.", "Right."]) {
    const next = await stage.model.asked();
    expect(next.heard().includes(words), `the model heard ${next.heard()}`);
    next.ends("Yes.");
  }
  await chat.idle();
  expect(stage.model.unheard === 0, "the removed prompt ran");
});

inNewest("sessions are found by their words, renamed, opened again and deleted", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  for (const [question, answer] of [["Speak of apples.", "Apples are red."], ["Speak of pears.", "Pears are green."]]) {
    await chat.beginSession();
    await chat.send(question);
    (await stage.model.asked()).ends(answer);
    await chat.shows(answer);
    await chat.idle();
  }
  const list = chat.frame.getByRole("dialog", { name: "Sessions" });
  const open = async (find, count) => {
    await chat.frame.getByRole("combobox", { name: "Session" }).click();
    await list.getByRole("searchbox", { name: "Find sessions" }).fill(find);
    await until(`${count} sessions are found`, async () => (await list.getByRole("listitem").count()) === count);
  };
  await open("apples", 1);
  await list.getByRole("button", { name: "Speak of apples." }).first().press("F2");
  await list.getByRole("textbox", { name: "Title" }).fill("Fruit");
  await list.getByRole("textbox", { name: "Title" }).press("Enter");
  await list.getByRole("button", { name: "Fruit" }).first().click();
  await chat.shows("Apples are red.");
  await until("the title is the new one", async () => (await chat.frame.getByRole("combobox", { name: "Session" }).innerText()).includes("Fruit"));
  await open("pears", 1);
  await list.getByRole("listitem").hover(); // its ways are shown to a pointer
  await list.getByRole("button", { name: /^Delete/ }).click();
  await window.answer("Delete", "Delete");
  await until("none of pears is left", async () => (await list.getByRole("listitem").count()) === 0);
});
