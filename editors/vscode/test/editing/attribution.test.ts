import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accepting, placesOf, withAgent, withUser, type Track } from "../../src/host/editing/attribution";
import { linesOf, removedText } from "../../src/host/editing/hunks";

const BEFORE = "1\n2\n3\n4\n5\n6\n7\n";
const AGENT = "1\n2\nTHREE\n4\n5\n6\n7\n";
const begun: Track = { base: BEFORE, seen: AGENT };

/** The places as the user sees them: what stood there, what stands there, whether others changed it as well. */
function shown(track: Track, now: string): [string, string, boolean][] {
  const settled = withUser(track, now);
  return placesOf(settled, now).map((each) => [
    removedText(settled.base, each), linesOf(now).slice(each.newStart, each.newStart + each.newLines).join(""), each.isShared,
  ]);
}

describe("who changed what", () => {
  const agents: [string, string, boolean] = ["3\n", "THREE\n", false];

  test.each([
    ["another line", "1\n2\nTHREE\n4\n5\nsix\n7\n"],
    ["the line beside it", "1\n2\nTHREE\nfour\n5\n6\n7\n"],
    ["a new line in front of it", "1\n2\nnew\nTHREE\n4\n5\n6\n7\n"],
    ["a new line behind it", "1\n2\nTHREE\nnew\n4\n5\n6\n7\n"],
    ["the end, without a line end", "1\n2\nTHREE\n4\n5\n6\n7\nnew"],
    ["a line less", "1\nTHREE\n4\n5\n6\n7\n"],
  ])("what the user writes is no place of the agent's: %s", (_, now) => {
    expect(shown(begun, now)).toEqual([agents]);
  });

  test("what the user writes in the agent's line makes that place a shared one, and taking it back a pure one", () => {
    const now = AGENT.replace("THREE", "THREE or four");
    expect(shown(begun, now)).toEqual([["3\n", "THREE or four\n", true]]);
    expect(shown(withUser(begun, now), AGENT)).toEqual([agents]);
  });

  test("a place that was taken back is none, and comes back with its text", () => {
    const reverted = withUser(begun, BEFORE);
    expect(placesOf(reverted, BEFORE)).toEqual([]);
    expect(shown(reverted, AGENT)).toEqual([agents]);
  });

  test("what the user wrote before the agent's next edit is the user's still", () => {
    const typed = AGENT.replace("6", "six");
    const track = withAgent(begun, typed, typed.replace("1", "ONE"));
    expect(shown(track, typed.replace("1", "ONE"))).toEqual([["1\n", "ONE\n", false], agents]);
  });

  test("what the agent writes over a shared place does not make it a pure one", () => {
    const typed = AGENT.replace("THREE", "mine");
    const now = typed.replace("mine", "mine, better").replace("7", "SEVEN");
    const track = withAgent(begun, typed, now);
    expect(shown(track, now)).toEqual([["3\n", "mine, better\n", true], ["7\n", "SEVEN\n", false]]);
  });

  test("an accepted place is gone, the next edit of the same line shows what was accepted as what was before", () => {
    const now = AGENT.replace("6", "SIX");
    const track = withAgent(begun, AGENT, now);
    const [first] = placesOf(track, now);
    const left = accepting(track, now, first!);
    expect(shown(left, now)).toEqual([["6\n", "SIX\n", false]]);
    const again = now.replace("THREE", "third");
    expect(shown(withAgent(left, now, again), again)).toEqual([["THREE\n", "third\n", false], ["6\n", "SIX\n", false]]);
  });

  test("a shared place is accepted with what the user wrote", () => {
    const now = AGENT.replace("THREE", "mine");
    const [place] = placesOf(begun, now);
    expect(shown(accepting(begun, now, place!), now)).toEqual([]);
  });

  test("a text that was deleted at the end is not glued to what the user writes there", () => {
    expect(shown({ base: "a\nb", seen: "a\n" }, "a\ny")).toEqual([["b", "y", true]]);
    expect(shown({ base: "a\nb", seen: "a\n" }, "a")).toEqual([["a\nb", "a", true]]);
  });
});

const text = fc.array(fc.constantFrom("a\n", "b\n", "c\n", "\n", "😀\n"), { maxLength: 10 })
  .chain((lines) => fc.constantFrom("", "end").map((last) => lines.join("") + last));

describe("of any texts", () => {
  test("the user alone makes no place", () => fc.assert(fc.property(text, text, (before, now) => {
    expect(shown({ base: before, seen: before }, now)).toEqual([]);
  })));

  test("taking back all places leaves what the user would have without the agent, and then there is none", () =>
    fc.assert(fc.property(text, text, text, (before, agent, now) => {
      const track = withUser({ base: before, seen: agent }, now);
      const back = [...placesOf(track, now)].reverse().reduce((lines, each) =>
        lines.toSpliced(each.newStart, each.newLines, removedText(track.base, each)), linesOf(now)).join("");
      expect(back).toBe(track.base);
      expect(placesOf(withUser(track, back), back)).toEqual([]);
    })));

  test("undoing what was taken back brings the places back as they were", () => fc.assert(fc.property(text, text, fc.nat(), (before, agent, at) => {
    const track = { base: before, seen: agent };
    const places = placesOf(track, agent);
    fc.pre(places.length > 0);
    const { newStart, newLines, ...place } = places[at % places.length]!;
    const now = linesOf(agent).toSpliced(newStart, newLines, removedText(before, { newStart, newLines, ...place })).join("");
    expect(placesOf(withUser(withUser(track, now), agent), agent)).toEqual(places);
  })));

  test("accepting all places leaves none", () => fc.assert(fc.property(text, text, text, (before, agent, now) => {
    const track = withUser({ base: before, seen: agent }, now);
    const left = [...placesOf(track, now)].reverse().reduce((then, each) => accepting(then, now, each), track);
    expect(placesOf(left, now)).toEqual([]);
  })));

  test("a place that nobody else touched is as the agent left it", () => fc.assert(fc.property(text, text, text, (before, agent, now) => {
    const track = withUser({ base: before, seen: agent }, now);
    for (const each of placesOf(track, now).filter((place) => !place.isShared)) {
      expect(track.seen).toContain(linesOf(now).slice(each.newStart, each.newStart + each.newLines).join(""));
    }
  })));

  test("texts never lose or glue lines by being kept apart", () => fc.assert(fc.property(text, text, text, (before, agent, now) => {
    const track = withUser({ base: before, seen: agent }, now);
    const known = new Set([before, agent, now].flatMap(linesOf));
    for (const line of [...linesOf(track.base), ...linesOf(track.seen)]) expect(known).toContain(line);
  })));
});
