import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What measures memory or moments of its own process has a process for each file. */
const MEASURING = ['test/operator/event-stream.test.ts', 'test/keeper.test.ts'];
const OF_PROGRAM = ['test/process/**/*.test.ts', 'test/operator/**/*.test.ts'];

/** A minute each, of computing at low priority or of waiting: the others run beside them. */
const LONGEST =
  /\/test\/(simulation\/(swarm|planted)|library\/package|process\/(first-steps|reload-files|exec))\.test\.ts$/;
/** Most of their time they wait, for timers and for processes. */
const WAITS = /\/test\/(process|liveness|operator)\//;

/** Begins with what takes longest, so that the end has no file that runs alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => {
      if (LONGEST.test(moduleId)) return 0;
      return WAITS.test(moduleId) ? 1 : 2;
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Most of them wait, or give way to others: six workers keep two processors busy.
    maxWorkers: 6,
    // A module is loaded once per worker and not once per file, which is half of the processor time.
    isolate: false,
    sequence: { sequencer: LongestFirst },
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
