import { defineConfig } from 'vitest/config';

/** They bound how late a renewal may be, with ten thousand markets, or with nine daemons at once. */
const ALONE = ['black-hole', 'shards-rolling-update'].map((name) => `test/ops/${name}.test.ts`);

/** Tests that need more than Node: Debian packages that `.ci/run` installs. */
export default defineConfig({
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    globalSetup: 'test/process/bundle.ts',
    projects: [
      {
        extends: true,
        // Most of them wait for timers, containers and scrapes: three workers keep two processors busy.
        test: { name: 'beside others', include: ['test/ops/**/*.test.ts'], exclude: ALONE, maxWorkers: 3 },
      },
      { extends: true, test: { name: 'alone', include: ALONE, fileParallelism: false } },
    ],
  },
});
