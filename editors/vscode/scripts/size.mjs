// Fails where the packaged extension is larger than it may be.
import { statSync } from "node:fs";

const MOST = 1_000_000;
const { size } = statSync("dist/agentd.vsix");
if (size > MOST) {
  console.error(`dist/agentd.vsix has ${size} bytes, more than ${MOST}`);
  process.exit(1);
}
