// Writes src/shared/wire.ts, the types of the protocol, from what the daemon says of itself: `agentd schema`.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const agentd = process.env.AGENTD ?? "agentd";
const schema = JSON.parse(execFileSync(agentd, ["schema"], { encoding: "utf8", maxBuffer: 1 << 26 }));
const all = { title: "Wire", type: "object", $defs: schema.$defs, additionalProperties: false,
  properties: Object.fromEntries(Object.keys(schema.$defs).map((name) => [name, { $ref: `#/$defs/${name}` }])) };
const text = await compile(all, "Wire", {
  bannerComment: "// The protocol's types, written by `npm run wire` from `agentd schema`. Do not edit.",
  additionalProperties: false, declareExternallyReferenced: true, unreachableDefinitions: false, format: true,
});
writeFileSync(new URL("../src/shared/wire.ts", import.meta.url), text);
