/**
 * Who changed what of a text: what of it the agent did, kept apart from what the user wrote since. All texts have `\n`
 * as line ends.
 */
import { hunksBetween, linesOf, type Hunk } from "./hunks";

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
function isWhole(lines: string[], from: number, to: number): boolean {
  for (let at = Math.max(from, 0); at < Math.min(to, lines.length - 1); at++) if (!lines[at]?.endsWith("\n")) return false;
  return true;
}

/**
 * Makes in another text what was done to a text, but for what touches a place in which the two differ.
 *
 * @param other the lines of the other text
 * @param apart how the text came of the other one
 * @param done what was done to the text, which made `then` of it
 */
function carried(other: string[], apart: Hunk[], done: Hunk[], then: string[]): string {
  let lines = other;
  for (const hunk of [...done].reverse()) {
    const span = oldSpan(hunk);
    if (apart.some((each) => isWithin(span, newSpan(each)))) continue;
    const moved = apart.filter((each) => newSpan(each).end <= span.start).reduce((sum, each) => sum + each.oldLines - each.newLines, 0);
    const at = span.start + moved;
    const made = lines.toSpliced(at, hunk.oldLines, ...then.slice(hunk.newStart, hunk.newStart + hunk.newLines));
    if (isWhole(made, at - 1, at + hunk.newLines)) lines = made;
  }
  return lines.join("");
}

/** As many lines for as many are each for its own: one of them may be the user's, the next one the agent's. */
function lineByLine(hunks: Hunk[]): Hunk[] {
  return hunks.flatMap((each) => (each.oldLines !== each.newLines ? [each] : Array.from({ length: each.oldLines }, (_, line) => (
    { oldStart: each.oldStart + line, oldLines: 1, newStart: each.newStart + line, newLines: 1 }))));
}

const sizeOf = (hunks: Hunk[]): number => hunks.reduce((sum, each) => sum + each.oldLines + each.newLines, 0);

/** The track once the text is `now` by the user's doing: what is not at a place of the agent's is no change of it. */
export function withUser(track: Track, now: string): Track {
  if (track.seen === now || track.base === now) return track;
  const agent = hunksBetween(track.base, track.seen);
  const [base, seen, then] = [linesOf(track.base), linesOf(track.seen), linesOf(now)];
  const made = (user: Hunk[]): Track => ({ base: carried(base, agent, user, then), seen: carried(seen, [], user, then) });
  // Both or neither: what is in one of them alone would count as the agent's.
  const free = lineByLine(hunksBetween(track.seen, now))
    .filter((each) => !agent.some((other) => isWithin(oldSpan(each), newSpan(other))) && made([each]).base !== track.base);
  const before = sizeOf(hunksBetween(track.base, now));
  // What takes back some of the agent's looks like the user's own where lines are alike: then the texts come no closer.
  const isOwn = (user: Hunk[]): boolean => sizeOf(hunksBetween(made(user).base, now)) === before - sizeOf(user);
  const own = isOwn(free) ? free : free.filter((each) => isOwn([each]));
  return own.length === 0 ? track : made(own);
}

/** The track once the agent has made `after` of the text `before`. */
export function withAgent(track: Track, before: string, after: string): Track {
  const { base, seen } = withUser(track, before);
  if (seen === before) return { base, seen: after };
  // What it did where the user had written stays with what the user wrote: that place is shared.
  return { base, seen: carried(linesOf(seen), hunksBetween(seen, before), hunksBetween(before, after), linesOf(after)) };
}

/** The places of a text that the agent changed, as the text is now. */
export function placesOf(track: Track, now: string): Place[] {
  const since = hunksBetween(track.seen, now).map(newSpan);
  return hunksBetween(track.base, now).map((each) => ({ ...each, isShared: since.some((other) => touches(newSpan(each), other)) }));
}

/** The track without a place, which is right as it is now. */
export function accepting(track: Track, now: string, place: Hunk): Track {
  const [base, seen, then] = [linesOf(track.base), linesOf(track.seen), linesOf(now)];
  base.splice(place.oldStart, place.oldLines, ...then.slice(place.newStart, place.newStart + place.newLines));
  const since = hunksBetween(track.seen, now).filter((each) => touches(newSpan(place), newSpan(each)));
  return { base: base.join(""), seen: carried(seen, [], since, then) };
}
