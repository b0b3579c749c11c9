import { defineConfig } from "vitest/config";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    // One Preact for the view and for what tests draw with.
    server: { deps: { inline: [/@testing-library/, /@preact\/signals/, /^preact/] } },
  },
});
