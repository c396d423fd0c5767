// The TypeScript sources of the viewer for unit tests, through the esbuild that builds the page.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const viewer = new URL("../../apps/viewer/", import.meta.url);
const { build } = createRequire(new URL("package.json", viewer))("esbuild");

/** What a module of apps/viewer/src exports. */
export async function module(name) {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`src/${name}.ts`, viewer))], bundle: true, write: false, format: "esm",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
