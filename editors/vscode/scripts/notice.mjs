// The licences of all packages of others of which something is in the bundles.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The folders of the packages that these input files of a bundle are from. */
export function packagesOf(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const at = input.lastIndexOf("node_modules/");
    if (at < 0) continue;
    const parts = input.slice(at + "node_modules/".length).split("/");
    folders.add(input.slice(0, at) + join("node_modules", ...parts.slice(0, parts[0].startsWith("@") ? 2 : 1)));
  }
  return [...folders].sort();
}

/** The text of NOTICE.md; inputs are below `root`. Throws where a package has no licence to show. */
export function notice(inputs, root) {
  const told = packagesOf(inputs).map((folder) => entry(join(root, folder)));
  const list = told.map(({ name, version, licence }) => `* ${name} ${version} (${licence})`);
  const texts = told.map(({ name, version, text }) => `## ${name} ${version}\n\n\`\`\`\`text\n${text.trimEnd()}\n\`\`\`\`\n`);
  return `# Third-party notices\n\nThis extension contains parts of these packages:\n\n${list.join("\n")}\n\n${texts.join("\n")}`;
}

function entry(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const files = licences(folder);
  if (typeof license !== "string" || files.length === 0) throw new Error(`${name} ${version} does not say its licence`);
  return { name, version, licence: license, text: files.map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n") };
}

/** Its own files, or those of the package that holds it. */
function licences(folder) {
  const named = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice|third-?party-?notices)/i.test(file)).sort();
  const texts = named.filter((file) => /licen[cs]e|copying/i.test(file));
  if (texts.length > 0) return named;
  const above = dirname(folder);
  return existsSync(join(above, "package.json")) ? licences(above) : [];
}
