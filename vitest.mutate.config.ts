import { defineConfig } from 'vitest/config';

/** The tests that judge a change of the core: `npm run mutate`. */
export default defineConfig({
  test: {
    include: ['test/core/**/*.test.ts', 'test/simulation/regressions.test.ts'],
    testTimeout: 20_000,
    isolate: false,
  },
});
