import { expect, test } from "vitest";
import { atLeast, versionIn } from "../../src/host/versions";

test("the version is read out of what agentd --version prints, and out of nothing else", () => {
  expect(versionIn("agentd 0.1.0\n")).toBe("0.1.0");
  expect(versionIn("agentd 1.2.3rc1\n")).toBe("1.2.3rc1");
  expect(versionIn("usage: something else 1.0")).toBeNull();
});

test("versions are compared by number", () => {
  expect(atLeast("0.10.0", "0.9.1")).toBe(true);
  expect(atLeast("0.9", "0.9.1")).toBe(false);
  expect(atLeast("1", "1.0.0")).toBe(true);
  expect(atLeast("0.1.0.dev3", "0.1.0")).toBe(true);
});
