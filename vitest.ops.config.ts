import { defineConfig } from 'vitest/config';

/** Tests that need more than Node: Debian packages that `.ci/run` installs. */
export default defineConfig({
  test: {
    include: ['test/ops/**/*.test.ts'],
    globalSetup: 'test/process/bundle.ts',
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
  },
});
