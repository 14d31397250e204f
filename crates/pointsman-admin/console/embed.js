// Compresses what Vite has built, and writes the list by which the binary has it in it; with `--check FOLDER` it looks
// whether what is compressed there is what stands beside it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from "node:zlib";

const MEDIA_TYPES = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
};
const isCheck = process.argv[2] === "--check";
const dist = isCheck ? process.argv[3] : join(import.meta.dirname, "dist");
const files = () =>
  readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(br|gz|rs)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(dist.length + 1))
    .sort();

if (isCheck) {
  for (const name of files()) {
    const content = readFileSync(join(dist, name));
    const unpacked = [gunzipSync(readFileSync(join(dist, `${name}.gz`))), brotliDecompressSync(readFileSync(join(dist, `${name}.br`)))];
    if (!unpacked.every((found) => found.equals(content))) throw new Error(`${name} is compressed wrong`);
  }
  process.exit();
}

// The licences of what is built in ask to be kept with it.
const packages = Object.entries(JSON.parse(readFileSync(join(import.meta.dirname, "package-lock.json"), "utf8")).packages);
// What is needed to build alone is not built in.
const builtIn = packages.filter(([path, { dev, optional }]) => path !== "" && !dev && !optional);
const licences = builtIn.map(([path]) => path.replace("node_modules/", "")).map((name) => {
  const text = readFileSync(join(import.meta.dirname, "node_modules", name, "LICENSE"), "utf8");
  return `${name}\n\n${text.trim()}\n`;
});
writeFileSync(join(dist, "licences.txt"), licences.join("\n"));

const rows = files().map((name) => {
  const content = readFileSync(join(dist, name));
  writeFileSync(join(dist, `${name}.gz`), gzipSync(content, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(join(dist, `${name}.br`), brotliCompressSync(content, { params }));
  return `    File {
        path: "${name}",
        media_type: "${MEDIA_TYPES[name.split(".").pop()]}",
        is_hashed: ${name.startsWith("assets/")},
        plain: include_bytes!("${name}"),
        gzip: include_bytes!("${name}.gz"),
        brotli: include_bytes!("${name}.br"),
    },
`;
});
writeFileSync(
  join(dist, "files.rs"),
  `//! Written by \`cargo xtask console\`: the files of the console.

use super::File;

pub(super) static FILES: &[File] = &[
${rows.join("")}];
`,
);
