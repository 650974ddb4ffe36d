import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What measures memory or moments of its own process has a process for each file. */
const MEASURING = ['test/operator/event-stream.test.ts', 'test/keeper.test.ts'];
const OF_PROGRAM = ['test/process/**/*.test.ts', 'test/operator/**/*.test.ts'];

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
    // Tests of processes mostly wait: four workers keep two processors busy.
    maxWorkers: 4,
    // A module is loaded once per worker and not once per file, which is half of the processor time.
    isolate: false,
    sequence: { sequencer: WaitingFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: ['test/ops/**', ...OF_PROGRAM, ...MEASURING],
        },
      },
      {
        extends: true,
        test: {
          name: 'program',
          include: OF_PROGRAM,
          exclude: MEASURING,
          globalSetup: 'test/process/bundle.ts',
        },
      },
      { extends: true, test: { name: 'measuring', include: MEASURING, isolate: true } },
    ],
  },
});
