import { beforeEach, expect, test, vi } from "vitest";
import { originalUri, Originals, Previews } from "../../src/host/editing/originals";
import { fileUri } from "../../src/host/editing/uris";

const shown = vi.hoisted(() => ({ commands: [] as unknown[][], documents: [] as { path: string }[], files: new Map<string, string>() }));

vi.mock("vscode", () => {
  const uriOf = (parts: { scheme: string; path: string; query?: string }) => ({
    ...parts, fsPath: parts.path, toString: () => `${parts.scheme}:${parts.path}?${parts.query ?? ""}`,
  });
  return {
    Uri: {
      parse: (text: string) => {
        const [, scheme = "", path = ""] = /^([\w.-]+):(?:\/\/)?(.*)$/.exec(text) ?? [];
        return uriOf({ scheme, path });
      },
      from: uriOf,
    },
    commands: { executeCommand: async (...args: unknown[]) => void shown.commands.push(args) },
    window: { showTextDocument: async (uri: { path: string }) => void shown.documents.push(uri) },
    workspace: {
      textDocuments: [],
      fs: {
        readFile: async ({ path }: { path: string }) => {
          const text = shown.files.get(path);
          if (text === undefined) throw new Error("there is none");
          return new TextEncoder().encode(text);
        },
      },
    },
  };
});

beforeEach(() => {
  shown.commands = [];
  shown.documents = [];
  shown.files = new Map([["/w/a.txt", "one\r\ntwo\r\n"]]);
});

const PATCH = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";
const MADE = "--- /dev/null\n+++ new.txt\n@@ -0,0 +1,1 @@\n+made\n";

async function previewed(uri: string, patch: string): Promise<string[]> {
  const previews = new Previews();
  await previews.open(uri, patch);
  const at = shown.commands.flatMap(([, , after]) => [after]).concat(shown.documents);
  return at.map((each) => previews.provideTextDocumentContent(each as never));
}

test("what a patch would make of a file is compared with it, whatever its line ends", async () => {
  expect(await previewed("file:///w/a.txt", PATCH)).toEqual(["one\r\nTWO\r\n"]);
  expect(shown.commands[0]?.[0]).toBe("vscode.diff");
});

test("what a patch would make anew is compared with nothing", async () => {
  expect(await previewed("file:///w/new.txt", MADE)).toEqual(["made\n"]);
  expect(shown.commands[0]?.[1]).toMatchObject({ scheme: "agentd-original", query: "empty" });
});

test("a patch that does not fit, or is none, is shown as it is", async () => {
  for (const patch of [PATCH.replace("-two", "-three"), "@@ no patch @@\nat all", `${PATCH}${MADE}`]) {
    shown.documents = [];
    expect(await previewed("file:///w/a.txt", patch)).toEqual([patch]);
    expect(shown.commands).toEqual([]);
  }
});

test("nothing but files is opened by its address", () => {
  expect(fileUri("file:///w/a.txt").path).toBe("/w/a.txt");
  for (const uri of ["command:workbench.action.quit", "vscode://a.b/c", "https://x.example/", "vscode-userdata:/settings.json"]) {
    expect(() => fileUri(uri), uri).toThrow("Only files are opened");
  }
});

test("what was not told is asked for again, and what was told never", async () => {
  let asked = 0;
  const client = { request: async () => (asked++ === 0 ? Promise.reject(new Error("ended")) : { text: "before" }) };
  const originals = new Originals(client as never);
  const place = { sessionId: "s", promptId: "p", uri: "file:///w/a.txt" };
  await expect(originals.provideTextDocumentContent(originalUri(place))).rejects.toThrow("ended");
  expect(await originals.text(place)).toBe("before");
  expect(await originals.text(place)).toBe("before");
  expect(asked).toBe(2);
});

test("what files were is asked for once, and of many only the last are remembered", async () => {
  const asked: string[] = [];
  const originals = new Originals({ request: async (_: string, { uri }: { uri: string }) => (asked.push(uri), { text: uri }) } as never);
  const text = (name: number) => originals.text({ sessionId: "s", promptId: "p", uri: `file:///w/${name}.txt` });
  for (const name of [...Array(60).keys()]) await text(name);
  for (const name of [11, 59, 11]) expect(await text(name)).toBe(`file:///w/${name}.txt`);
  expect(asked.length).toBe(60);
  await text(0);
  await text(11);
  expect(asked.slice(60)).toEqual(["file:///w/0.txt"]);
});
