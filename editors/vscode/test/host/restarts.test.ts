import { expect, test } from "vitest";
import { Restarts } from "../../src/host/restarts";

test("each restart waits longer than the one before, and after four in three minutes there is none", () => {
  const restarts = new Restarts();
  const delays = [0, 1000, 2000, 3000, 4000].map((now) => restarts.next(now));
  expect(delays).toEqual([250, 1000, 4000, 8000, null]);
});

test("a daemon that had run for long is started again at once", () => {
  const restarts = new Restarts();
  for (const now of [0, 1000, 2000, 3000]) restarts.next(now);
  expect(restarts.next(200_000)).toBe(250);
});

test("what the user starts counts anew", () => {
  const restarts = new Restarts();
  for (const now of [0, 1, 2, 3]) restarts.next(now);
  restarts.forget();
  expect(restarts.next(4)).toBe(250);
});
