// Builds page.html from src/: `node build.mjs [--check]`. With --check it writes nothing, and exits with 1 where
// page.html is not what the sources build.
import { build, transform } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const text = (name) => readFile(path(name), "utf8");

async function script() {
  const { outputFiles } = await build({
    entryPoints: [path("src/main.ts")], bundle: true, minify: true, write: false, format: "iife", target: "es2022",
    charset: "ascii", legalComments: "none", absWorkingDir: path("."), logLevel: "warning",
  });
  return outputFiles[0].text.trim();
}

async function style() {
  const css = (await text("node_modules/uplot/dist/uPlot.min.css")) + (await text("src/page.css"));
  return (await transform(css, { loader: "css", minify: true, charset: "ascii" })).code.trim();
}

/** The page with an empty place for data. */
export async function page() {
  const parts = {
    LICENCE: `<!-- Contains uPlot:\n${(await text("node_modules/uplot/LICENSE")).trim()}\n-->`,
    STYLE: await style(),
    SCRIPT: await script(),
  };
  const built = (await text("src/page.template.html")).replace(/<!--([A-Z]+)-->/g, (_, name) => parts[name]);
  if (built.split('id="tutti-data"').length !== 2 || /<\/script|<!--/i.test(parts.SCRIPT))
    throw new Error("the script holds what ends it, or the mark of the data");
  return built;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = await page();
  if (process.argv[2] !== "--check") await writeFile(path("page.html"), built);
  else if ((await text("page.html")) !== built) {
    console.error("page.html is not what src/ builds; build it with: npm run build");
    process.exitCode = 1;
  }
}
