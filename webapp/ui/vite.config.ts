// SPDX-License-Identifier: MIT
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// NAME.gz beside each file: the service packs nothing itself.
function packed(): Plugin {
  let folder = "";
  return {
    name: "packed",
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const name of readdirSync(folder).filter((file) => !file.endsWith(".gz")))
        writeFileSync(join(folder, `${name}.gz`), gzipSync(readFileSync(join(folder, name)), { level: 9 }));
    },
  };
}

export default defineConfig({
  base: "/ui/",
  publicDir: "public",
  plugins: [packed()],
  build: {
    outDir: process.env.SLUICE_UI_OUT ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]", inlineDynamicImports: true },
    },
  },
});
