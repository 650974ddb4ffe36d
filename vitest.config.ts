import { defineConfig } from 'vitest/config';

/** What measures processor time, memory or moments has a process for each file. */
const MEASURING = [
  'test/process/**/*.test.ts',
  'test/operator/**/*.test.ts',
  'test/config/load-aside.test.ts',
  'test/keeper.test.ts',
];

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Tests of processes mostly wait: five workers keep two processors busy.
    maxWorkers: 5,
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: ['test/ops/**', ...MEASURING],
          // A module is loaded once per worker and not once per file, which is half of the processor time.
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'program', include: MEASURING },
      },
    ],
  },
});
