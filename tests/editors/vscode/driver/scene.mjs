/** A conversation with something of everything in it, for looks and pictures. */

export const CODE = `"""Greets people."""


def greeting(name: str) -> str:
    return "Hello, " + name


def farewell(name):
    return "Bye, " + name


if __name__ == "__main__":
    print(greeting("world"))
`;

const ANSWER = `I look at the file and at who calls it.

1. \`farewell\` has no types yet.
2. Nothing else has to change.

\`\`\`python
def farewell(name: str) -> str:
    return "Bye, " + name
\`\`\`
`;

/** Plays it on a stage up to a question about a command; gives the window and its chat. Mode `edit`. */
export async function scene(stage, settings = {}) {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const window = await stage.open({ files: { "greet.py": CODE, "README.md": "# Greetings\n" }, settings });
  const chat = await window.chat();
  await window.openFile("greet.py");
  await chat.send("Add the missing types, then run it");
  const first = await stage.model.asked();
  first.thinks("The file is short: I read it whole before I change anything in it.");
  first.says(ANSWER).calls("read_file", { file_path: "greet.py" });
  first.calls("todo_write", { items: [
    { id: "1", text: "Add the missing types", status: "in_progress" },
    { id: "2", text: "Run the file", status: "pending" },
  ] }).ends();
  (await stage.model.asked()).calls("edit_file", {
    file_path: "greet.py", old_string: "def farewell(name):", new_string: "def farewell(name: str) -> str:",
  }).ends();
  (await stage.model.asked()).says("Now I run it.").calls("bash", { command: "python3 greet.py" }).ends();
  await chat.permission.waitFor();
  return { window, chat };
}
