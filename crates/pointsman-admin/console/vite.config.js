import { defineConfig } from "vite";

export default defineConfig({
  // Wherever the listener stands, and under whatever name.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    // Nothing is worked around, and nothing is put into the page: the policy of the listener lets no text in.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
  // `npx vite` shows it as it is changed. The name that the browser asks is kept: it is that of the page which asks.
  server: { proxy: { "/api": { target: process.env.POINTSMAN_ADMIN ?? "http://127.0.0.1:9090", changeOrigin: false } } },
});
