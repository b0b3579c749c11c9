/**
 * Markdown in pieces, so that a text that grows is not parsed and drawn anew with every word: blocks at the top
 * that are finished stay as they are, and only what may still change is parsed again.
 *
 * CommonMark's blocks are found line by line, and a block that another one has followed is never changed by what
 * comes later, with two exceptions that are heeded here: a line that has no end yet may still turn out to belong to
 * the block before it (`1` becomes `1. next item`), and a link may refer to a definition that comes later.
 */
import MarkdownIt from "markdown-it";

/** A block at the top level. `at` is where it begins in the text: its name over time. */
export type Piece =
  | { type: "html"; at: number; html: string }
  | { type: "code"; at: number; language: string; code: string; closed: boolean };

export interface Parsed {
  source: string;
  /** Finished, never to change. */
  done: readonly Piece[];
  /** What may still change. */
  open: readonly Piece[];
  /** Where the open part begins. */
  from: number;
  references: References;
  /** Nothing comes any more, so that also links to what was defined behind them are in it. */
  isFinal: boolean;
}

export type References = NonNullable<NonNullable<Parameters<InstanceType<typeof MarkdownIt>["parse"]>[1]>["references"]>;

const md = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
// The library takes no `file:`; here such a link is opened in the editor.
md.validateLink = (url) => !/^\s*(?:javascript|vbscript|data):/i.test(url);
// What the model wants shown as an image would have to be fetched; it is a link here.
md.disable("image");
// Code inside a list or quotation: the bar with its buttons as the code at the top has, without colours.
md.renderer.rules.fence = (tokens, index) => {
  const token = tokens[index]!;
  return codeBar(languageOf(token.info)) + `<pre tabindex="0"><code>${md.utils.escapeHtml(token.content)}</code></pre></div>`;
};
// The policy of the page allows no style in HTML.
for (const cell of ["th_open", "td_open"]) {
  md.renderer.rules[cell] = (tokens, index) => {
    const align = /text-align:\s*(\w+)/.exec(String(tokens[index]!.attrGet("style") ?? ""))?.[1];
    return `<${tokens[index]!.tag}${align ? ` data-align="${align}"` : ""}>`;
  };
}
md.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>';
md.renderer.rules.table_close = () => "</table></div>";

function codeBar(language: string): string {
  const name = md.utils.escapeHtml(language);
  return `<div class="code"><div class="code-bar"><span class="code-language">${name}</span><span class="code-actions">`
    + '<button type="button" class="icon-button codicon codicon-insert" data-act="insert" title="Insert at cursor" aria-label="Insert at cursor"></button>'
    + '<button type="button" class="icon-button codicon codicon-copy" data-act="copy" title="Copy" aria-label="Copy code"></button>'
    + "</span></div>";
}

export function languageOf(info: string): string {
  return info.trim().split(/[\s,{:]/, 1)[0] ?? "";
}

/**
 * `text` whole and parsed; of `before`, an earlier state of the same text, what is finished is kept.
 *
 * @param known definitions of links that stand before the text
 */
export function parse(text: string, before: Parsed | null, final: boolean, known: References = {}): Parsed {
  if (before?.source === text && (before.isFinal || !final)) return before;
  if (!before || before.isFinal || !text.startsWith(before.source)) return pieces(text, 0, [], { ...known }, final);
  if (final && mayDefine(text)) return pieces(text, 0, [], { ...known }, final);
  return (final ? null : longerCode(text, before)) ?? pieces(text, before.from, before.done, before.references, final);
}

/** A fence that only goes on, which is told without a look at all of it; null where it may not be that. */
function longerCode(text: string, before: Parsed): Parsed | null {
  const [code] = before.open;
  if (before.open.length !== 1 || code?.type !== "code" || code.closed) return null;
  const marker = /^(?:`{3,}|~{3,})/.exec(text.slice(code.at, code.at + 100))?.[0];
  const begin = text.indexOf("\n", code.at) + 1;
  const line = text.lastIndexOf("\n", before.source.length - 1) + 1;
  if (marker === undefined || begin === 0 || begin > before.source.length) return null;
  const all = text.slice(begin);
  const last = all.slice(all.lastIndexOf("\n") + 1); // a line of blanks at the end is none yet
  const added = text.slice(Math.max(begin, line));
  const isPlain = !/[\r\0]/.test(all) && !new RegExp(`^ {0,3}${marker[0]!}{${marker.length},}[ \\t]*$`, "m").test(added);
  return isPlain ? { ...before, source: text, open: [{ ...code, code: /^[ \t]*$/.test(last) ? all.slice(0, all.length - last.length) : all }] } : null;
}

/** The definitions of links in a text. */
export function referencesIn(text: string): References {
  const env: { references?: References } = {};
  if (text !== "") md.parse(text, env);
  return env.references ?? {};
}

/** Whether a text may define links: where it grew they were not known from the beginning, or only in part. */
function mayDefine(text: string): boolean {
  return text.includes("]:");
}

function pieces(text: string, from: number, done: readonly Piece[], references: References, final: boolean): Parsed {
  const rest = text.slice(from);
  const env = { references };
  const blocks = topLevel(md.parse(rest, env));
  const lines = lineStarts(rest);
  const made = blocks.map((block): Piece => {
    const at = from + (lines[block.line] ?? 0);
    const first = block.tokens[0]!;
    if (block.tokens.length === 1 && first.type === "fence") {
      return { type: "code", at, language: languageOf(first.info), code: first.content, closed: final || isClosed(first, rest, lines) };
    }
    return { type: "html", at, html: md.renderer.render(block.tokens, md.options, env) };
  });
  if (final) return { source: text, done: [...done, ...made], open: [], from: text.length, references: env.references, isFinal: true };
  // The last block is open, but for a fence with its closing line; so is the one before it while the last one has no
  // whole line yet.
  const last = blocks.at(-1);
  const behind = last && endOfFence(made.at(-1)!, last.tokens[0]!, rest, lines);
  const kept = last === undefined ? 0 : behind !== undefined ? made.length : Math.max(0, last.line < lines.length - 1 ? made.length - 1 : made.length - 2);
  const open = made.slice(kept);
  return {
    source: text, done: kept > 0 ? [...done, ...made.slice(0, kept)] : done, open,
    from: behind !== undefined ? from + behind : kept > 0 ? open[0]!.at : from, references: env.references, isFinal: false,
  };
}

/** Where a fence ends whose closing line has come, and its end; else undefined. */
function endOfFence(piece: Piece, token: Token, text: string, lines: readonly number[]): number | undefined {
  const end = lines[token.map?.[1] ?? -1];
  return piece.type === "code" && piece.closed && end !== undefined && text[end - 1] === "\n" ? end : undefined;
}

type Token = ReturnType<typeof md.parse>[number];

function topLevel(tokens: Token[]): { line: number; tokens: Token[] }[] {
  const blocks: { line: number; tokens: Token[] }[] = [];
  let current: { line: number; tokens: Token[] } | null = null;
  for (const token of tokens) {
    if (token.level === 0 && token.nesting >= 0) {
      current = { line: token.map?.[0] ?? 0, tokens: [] };
      blocks.push(current);
    }
    current?.tokens.push(token);
  }
  // An inline token stands at level 1, inside its paragraph; what is left at level 0 with no line begins nothing.
  return blocks;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** Whether a fence has its closing line: without it, it reaches to the end of the text. */
function isClosed(fence: Token, text: string, lines: readonly number[]): boolean {
  const end = fence.map![1];
  const last = /^ {0,3}(`+|~+)[ \t]*$/.exec(text.slice(lines[end - 1], lines[end]).trimEnd())?.[1];
  return end - 1 > fence.map![0] && last?.startsWith(fence.markup) === true;
}
