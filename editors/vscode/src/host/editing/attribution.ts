/**
 * Who changed what of a text: what of it the agent did, kept apart from what the user wrote since. All texts have `\n`
 * as line ends.
 */
import { accepted as taken, hunksBetween, linesOf, removedText, type Hunk } from "./hunks";

/**
 * `base` is what the text would be without what the agent did that is not accepted yet, `seen` the same text with it.
 * The user's changes elsewhere are part of both; those at a place of the agent's are part of neither.
 */
export interface Track {
  base: string;
  seen: string;
}

/** A place that the agent changed; `isShared` where it was changed since by somebody else as well. */
export interface Place extends Hunk {
  isShared: boolean;
}

interface Span {
  start: number;
  end: number;
}

const oldSpan = (hunk: Hunk): Span => ({ start: hunk.oldStart, end: hunk.oldStart + hunk.oldLines });
const newSpan = (hunk: Hunk): Span => ({ start: hunk.newStart, end: hunk.newStart + hunk.newLines });
/** What is put in at the edge of something else is beside it, not in it; where lines are gone, it may be those. */
const isWithin = (one: Span, other: Span): boolean =>
  (one.start < other.end && other.start < one.end) || (one.start === other.start && one.end === one.start && other.end === other.start);
const touches = (one: Span, other: Span): boolean => one.start <= other.end && other.start <= one.end;

/** Whether lines that are put together are still the lines that they were: all but the last have an end. */
function isWhole(lines: readonly string[], from: number, to: number): boolean {
  for (let at = Math.max(from, 0); at < Math.min(to, lines.length - 1); at++) if (!lines[at]?.endsWith("\n")) return false;
  return true;
}

interface Carried {
  text: string;
  /** What was done to the other text, too. */
  hunks: Hunk[];
}

/**
 * Makes in another text what was done to a text, but for what touches a place in which the two differ.
 *
 * @param other the lines of the other text
 * @param apart how the text came of the other one
 * @param done what was done to the text, which made `then` of it
 */
function carried(other: readonly string[], apart: readonly Hunk[], done: readonly Hunk[], then: readonly string[]): Carried {
  const lines = [...other];
  const hunks: Hunk[] = [];
  for (const hunk of [...done].reverse()) {
    const span = oldSpan(hunk);
    if (apart.some((each) => isWithin(span, newSpan(each)))) continue;
    const moved = apart.filter((each) => newSpan(each).end <= span.start).reduce((sum, each) => sum + each.oldLines - each.newLines, 0);
    const at = span.start + moved;
    const made = then.slice(hunk.newStart, hunk.newStart + hunk.newLines);
    const gone = lines.splice(at, hunk.oldLines, ...made);
    if (isWhole(lines, at - 1, at + made.length)) hunks.push(hunk);
    else lines.splice(at, made.length, ...gone);
  }
  return { text: lines.join(""), hunks: hunks.reverse() };
}

/** The most places of the user's that are looked at one by one, and lines of one place that are. */
const MAX_SINGLE = 20;
const MAX_SINGLY = 1000;

const sizeOf = (hunks: readonly Hunk[]): number => hunks.reduce((sum, each) => sum + each.oldLines + each.newLines, 0);

/**
 * Of what was done to a text, what is beside the agent's places. As many lines for as many are each for its own: one of
 * them may be the user's, the next one the agent's.
 */
function beside(agent: readonly Hunk[], user: readonly Hunk[]): Hunk[] {
  const isFree = (each: Hunk) => !agent.some((other) => isWithin(oldSpan(each), newSpan(other)));
  const singly = (each: Hunk) => (each.oldLines !== each.newLines || each.oldLines > MAX_SINGLY ? [] : Array.from({ length: each.oldLines }, (_, line) => (
    { oldStart: each.oldStart + line, oldLines: 1, newStart: each.newStart + line, newLines: 1 })));
  return user.flatMap((each) => (isFree(each) ? [each] : singly(each).filter(isFree)));
}

/** The track once the text is `now` by the user's doing: what is not at a place of the agent's is no change of it. */
export function withUser(track: Track, now: string): Track {
  if (track.seen === now || track.base === now) return track;
  const agent = hunksBetween(track.base, track.seen);
  const [base, seen, then] = [linesOf(track.base), linesOf(track.seen), linesOf(now)];
  /** In both or in neither: what is in one of them alone would count as the agent's. */
  const made = (user: Hunk[]): { track: Track; user: Hunk[] } => {
    const { hunks } = carried(seen, [], carried(base, agent, user, then).hunks, then);
    return { track: { base: carried(base, agent, hunks, then).text, seen: carried(seen, [], hunks, then).text }, user: hunks };
  };
  const free = made(beside(agent, hunksBetween(track.seen, now)));
  if (free.user.length === 0) return track;
  const before = sizeOf(hunksBetween(track.base, now));
  // What takes back some of the agent's looks like the user's own where lines are alike: then the texts come no closer.
  const isOwn = (it: typeof free): boolean => sizeOf(hunksBetween(it.track.base, now)) === before - sizeOf(it.user);
  if (isOwn(free)) return free.track;
  if (free.user.length > MAX_SINGLE) return track;
  const own = made(free.user.filter((each) => isOwn(made([each]))));
  return own.user.length === 0 ? track : own.track;
}

/** The track once the agent has made `after` of the text `before`. */
export function withAgent(track: Track, before: string, after: string): Track {
  const { base, seen } = withUser(track, before);
  if (seen === before) return { base, seen: after };
  // What it did where the user had written stays with what the user wrote: that place is shared.
  return { base, seen: carried(linesOf(seen), hunksBetween(seen, before), hunksBetween(before, after), linesOf(after)).text };
}

/** The places of a text that the agent changed, as the text is now. */
export function placesOf(track: Track, now: string): Place[] {
  const since = hunksBetween(track.seen, now).map(newSpan);
  return hunksBetween(track.base, now).map((each) => ({ ...each, isShared: since.some((other) => touches(newSpan(each), other)) }));
}

/** The track without a place, which is right as it is now. */
export function accepting(track: Track, now: string, place: Hunk): Track {
  const since = hunksBetween(track.seen, now).filter((each) => touches(newSpan(place), newSpan(each)));
  return { base: taken(track.base, now, place), seen: carried(linesOf(track.seen), [], since, linesOf(now)).text };
}

/** A place that was accepted: from which line of the text without the agent's work on, what stood there, what stands there. */
export interface Accepted {
  line: number;
  old: string;
  now: string;
}

export function acceptedOf(track: Track, now: string, place: Hunk): Accepted {
  return { line: place.oldStart, old: removedText(track.base, place), now: textOf(now, place) };
}

function textOf(text: string, { newStart, newLines }: Hunk): string {
  return linesOf(text).slice(newStart, newStart + newLines).join("");
}

/** The track without a place that was accepted elsewhere, where it still is such a one: of several the nearest. */
export function accepted(track: Track, { line, old, now }: Accepted): Track {
  const same = hunksBetween(track.base, track.seen).filter((each) => removedText(track.base, each) === old);
  const exact = same.filter((each) => textOf(track.seen, each) === now);
  const near = (all: Hunk[]) => [...all].sort((one, other) => Math.abs(one.oldStart - line) - Math.abs(other.oldStart - line))[0];
  // What was accepted with what the user wrote there since is another text than the agent's.
  const place = near(exact) ?? same.find((each) => each.oldStart === line);
  if (!place) return track;
  const base = [...linesOf(track.base)];
  base.splice(place.oldStart, place.oldLines, ...linesOf(now));
  const seen = [...linesOf(track.seen)];
  seen.splice(place.newStart, place.newLines, ...linesOf(now));
  return { base: base.join(""), seen: seen.join("") };
}
