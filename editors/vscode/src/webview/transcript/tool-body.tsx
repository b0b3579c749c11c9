/** What an opened card shows: what the call came to, what it is about, and its arguments on request. */
import { useState } from "preact/hooks";
import type { ResultBlock } from "../../shared/wire";
import { useStore } from "../model/store";
import type { OutputPart, Tool } from "../model/view";
import { Diff, singleEdit } from "./diff";
import { Output } from "./output";
import { Tasks } from "./tasks";

export function ToolBody({ tool, promptId }: { tool: Tool; promptId: string | undefined }) {
  return (
    <div class="tool-body">
      <Content tool={tool} promptId={promptId} />
      <Places tool={tool} />
      <Arguments tool={tool} />
    </div>
  );
}

function Content({ tool, promptId }: { tool: Tool; promptId: string | undefined }) {
  const { details, isError } = tool;
  if (tool.name === "task") return <Tasks tool={tool} />;
  if (details?.type === "edit" && !isError) {
    return <>{details.files.map((file) => <Diff key={file.uri} {...file} promptId={promptId} headless={singleEdit(tool) !== null} />)}</>;
  }
  if (tool.kind === "execute") return <Command tool={tool} />;
  return <Results blocks={tool.result ?? []} />;
}

function Command({ tool }: { tool: Tool }) {
  const store = useStore();
  const command = tool.arguments?.command;
  const parts = tool.output.length > 0 ? tool.output : textOf(tool.result ?? []);
  const spill = tool.details?.type === "command" ? tool.details.spillUri : undefined;
  return (
    <>
      {typeof command === "string" && command.includes("\n") && <pre class="command" tabIndex={0}>{command}</pre>}
      {parts.length > 0 && <Output parts={parts} fromEnd />}
      {spill !== undefined && (
        <button type="button" class="link" onClick={() => void store.attempt("openFile", { uri: spill })}>Open the whole output</button>
      )}
    </>
  );
}

function textOf(blocks: readonly ResultBlock[]): OutputPart[] {
  return blocks.flatMap((block) => (block.type === "text" ? [{ channel: "stdout" as const, text: block.text, missed: 0 }] : []));
}

export function Results({ blocks }: { blocks: readonly ResultBlock[] }) {
  return (
    <>
      {blocks.map((block, index) => block.type === "image"
        ? <Picture key={index} mimeType={block.mimeType} data={block.data} />
        : <Output key={index} parts={[{ channel: "stdout", text: block.text, missed: 0 }]} fromEnd={false} />)}
    </>
  );
}

export function Picture({ mimeType, data }: { mimeType: string; data: string }) {
  // Nothing but pictures of these types: an SVG is a document.
  if (!/^image\/(png|jpeg|gif|webp)$/.test(mimeType)) return <p class="muted">An image of type {mimeType}</p>;
  return <img class="picture" alt="Image" src={`data:${mimeType};base64,${data}`} />;
}

function Places({ tool }: { tool: Tool }) {
  const store = useStore();
  if (tool.details?.type === "edit" || tool.kind === "execute") return null;
  return (
    <>
      {tool.locations.map(({ uri, line }) => (
        <button key={`${uri}:${line}`} type="button" class="link" onClick={() => void store.attempt("openFile", { uri, ...(line === undefined ? {} : { line }) })}>
          Open file
        </button>
      ))}
    </>
  );
}

function Arguments({ tool }: { tool: Tool }) {
  const [open, setOpen] = useState(false);
  const raw = tool.rawArguments;
  const given = tool.arguments;
  if (!raw && (!given || Object.keys(given).length === 0)) return null;
  return (
    <div class="arguments">
      <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide arguments" : "Arguments"}</button>
      {open && <pre tabIndex={0}>{raw || JSON.stringify(given, null, 2)}</pre>}
    </div>
  );
}
