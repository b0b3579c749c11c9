/** What the user said, with what they attached. */
import type { ContentBlock, ResourceContent } from "../../shared/wire";
import { useStore } from "../model/store";
import type { UserEntry } from "../model/view";
import { MessageActions } from "./actions";
import { useFold } from "./folds";
import { Icon } from "./icon";
import { Picture } from "./tool-body";
import { fileName } from "./words";

const LONG = 1_200;
/** So much of it is in the page while it is cut; and never more than the second. */
const CUT = 4_000;
const MOST = 1 << 20;

export function UserMessage({ entry, nested }: { entry: UserEntry; nested: boolean }) {
  const texts = entry.content.filter((block) => block.type === "text" || block.type === "command");
  const others = entry.content.filter((block) => block.type === "resource" || block.type === "image");
  return (
    <article class="message user" data-message-id={entry.id} data-role="user" aria-label="You">
      <div class="bubble">
        {others.length > 0 && <div class="chips">{others.map((block, index) => <Attached key={index} block={block} />)}</div>}
        <Said id={entry.id} text={texts.map(wordsOf).join("\n\n")} />
      </div>
      {!nested && entry.done && <MessageActions entry={entry} />}
    </article>
  );
}

export function wordsOf(block: ContentBlock): string {
  if (block.type === "text") return block.text;
  return block.type === "command" ? `/${block.name} ${block.arguments}`.trim() : "";
}

function Said({ id, text }: { id: string; text: string }) {
  const long = text.length > LONG || text.split("\n").length > 16;
  const [open, toggle] = useFold(id, !long);
  if (text === "") return null;
  return (
    <>
      <div class={`said${long && !open ? " cut" : ""}`}>{long && !open ? text.slice(0, CUT) : text.length > MOST ? `${text.slice(0, MOST)}…` : text}</div>
      {long && <button type="button" class="link" aria-expanded={open} onClick={toggle}>{open ? "Show less" : "Show all"}</button>}
    </>
  );
}

function Attached({ block }: { block: ContentBlock }) {
  if (block.type === "image") return <Picture mimeType={block.mimeType} data={block.data} />;
  return block.type === "resource" ? <Resource block={block} /> : null;
}

function Resource({ block: { uri, range } }: { block: ResourceContent }) {
  const store = useStore();
  const from = range ? range.start.line + 1 : undefined;
  const to = range ? Math.max(range.start.line, range.end.character === 0 ? range.end.line - 1 : range.end.line) + 1 : undefined;
  const lines = from === undefined ? "" : from === to ? `:${from}` : `:${from}–${to}`;
  return (
    <button type="button" class="chip" title={uri} onClick={() => void store.attempt("openFile", { uri, ...(range ? { line: range.start.line } : {}) })}>
      <Icon name={uri.endsWith("/") ? "folder" : "file"} />
      <span>{fileName(uri)}{lines}</span>
    </button>
  );
}
