import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The names have no hash: the server puts one of all files into their path.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    target: "es2023",
    outDir: "../dist",
    emptyOutDir: true,
    modulePreload: false,
    assetsInlineLimit: 0,
    license: { fileName: "licenses.md" },
    rolldownOptions: {
      input: { explorer: "src/explorer.ts", model: "src/model.ts", playground: "src/playground.ts" },
      output: { entryFileNames: "[name].js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
    },
  },
});
