// @vitest-environment happy-dom
import { cleanup, screen } from "@testing-library/preact";
import { afterEach, describe, expect, it } from "vitest";
import type { Connection, Surroundings } from "../../../src/shared/messages";
import { boxOf } from "../../../src/webview/composer/box";
import { Setup } from "../../../src/webview/setup/setup";
import { draw, settle, shown, SURROUNDINGS } from "../kit";

afterEach(cleanup);

const setup = async (around: Partial<Surroundings> = {}) => draw(<Setup />, { around });
const connected = (connection: Connection) => setup({ connection });
const button = (name: string) => screen.getByRole("button", { name });

describe("the set-up", () => {
  it("installs agentd or takes another program where there is none", async () => {
    const { user, host } = await connected({ state: "missing", reason: "It is not on the PATH." });
    expect(screen.getByText("It is not on the PATH.")).toBeTruthy();
    await user.click(button("Install agentd"));
    await user.click(button("Choose the program…"));
    expect(host.asked("action").reverse()).toEqual([{ name: "install" }, { name: "chooseProgram" }]);
  });

  it("says how far the installing is", async () => {
    await connected({ state: "installing", step: "Making a Python environment" });
    expect(screen.getByRole("progressbar").getAttribute("aria-valuetext")).toBe("Making a Python environment");
  });

  it("says why agentd does not run, and offers to restart it and the log", async () => {
    const { user, host } = await connected({ state: "failed", reason: "It ended with code 2.", hint: "Look into the log." });
    expect(screen.getByRole("alert").textContent).toBe("It ended with code 2.");
    expect(screen.getByText("Look into the log.")).toBeTruthy();
    await user.click(button("Restart"));
    await user.click(button("Show log"));
    expect(host.asked("action").reverse()).toEqual([{ name: "restart" }, { name: "showLog" }]);
  });

  it("asks for a key of any provider, or runs the demo, where no model can be used", async () => {
    const { user, host } = await setup({ defaultModel: null, keys: [], models: [{ ...SURROUNDINGS.models[1]! }, { ...SURROUNDINGS.models[0]!, provider: "ollama" }] });
    expect(screen.getByText("No key for openai.")).toBeTruthy();
    await user.click(button("Set key for OpenAI"));
    await settle();
    expect(screen.queryByRole("button", { name: "Set key for Ollama" })).toBeNull();
    await user.click(button("Try the demo without a model"));
    expect(host.asked("action").reverse()).toEqual([{ name: "setKey", argument: "openai" }, { name: "demo" }]);
  });

  it("tells of Restricted Mode and of what is wrong, worst first, with the places", async () => {
    const { user, host } = await setup({ trusted: false, problems: [
      { severity: "warning", message: "A skill has no name." }, { severity: "error", message: "Unknown key.", uri: "file:///c/config.toml", line: 3 },
    ] });
    await user.click(button("Manage trust"));
    await user.click(button("config.toml:4"));
    expect(host.asked("action")).toEqual([{ name: "manageTrust" }]);
    expect(host.asked("openFile")).toEqual([{ uri: "file:///c/config.toml", line: 3 }]);
    const list = screen.getByRole("region", { name: "Problems of the set-up" });
    expect([...list.querySelectorAll("li")].map((one) => one.textContent)).toEqual(["Unknown key.config.toml:4", "A skill has no name."]);
  });

  it("shows what can be done, and puts an example into the box without sending it", async () => {
    const { user, host, store } = await setup();
    expect(screen.getByRole("heading").textContent).toBe("What shall we do in shop?");
    await user.click(screen.getByRole("button", { name: /^Fix/ }));
    expect(boxOf(store).draft.value.text).toBe("Find out why a test fails and fix it.");
    expect(host.asked("prompt")).toEqual([]);
  });

  it("leads back to the conversation from which it was opened", async () => {
    const { user, store } = await draw(<Setup />, { shown: shown() });
    store.setUp.value = true;
    await settle();
    await user.click(button("Back to the conversation"));
    expect(store.setUp.value).toBe(false);
  });
});
