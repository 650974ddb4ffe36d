import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What measures processor time, memory or moments has a process for each file. */
const MEASURING = ['test/process/**/*.test.ts', 'test/operator/**/*.test.ts', 'test/keeper.test.ts'];

/** Tests of processes take longest and mostly wait: they begin first, beside those that compute. */
class WaitingFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const waits = ({ moduleId }: TestSpecification) => (moduleId.includes('/test/process/') ? 0 : 1);
    return sorted.toSorted((one, other) => waits(one) - waits(other));
  }
}

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Tests of processes mostly wait: three workers keep two processors busy.
    maxWorkers: 3,
    sequence: { sequencer: WaitingFirst },
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
        test: { name: 'program', include: MEASURING, globalSetup: 'test/process/bundle.ts' },
      },
    ],
  },
});
