import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import type { Trail } from './hunter.ts';
import { PLANTED, plant, RULES, SEEDS } from './planted.ts';

/** A thread that hunts one bug after the other. */
function createHunter() {
  const worker = new Worker(new URL('./hunter.ts', import.meta.url), {
    // It takes the types out of the sources with a function of Node that says that it is new.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  let last: Promise<unknown> = Promise.resolve();
  return {
    hunt(number: number): Promise<Trail | null> {
      const found = last.then(async () => {
        worker.postMessage(number);
        const [trail] = await once(worker, 'message');
        return trail;
      });
      last = found.catch(() => undefined);
      return found;
    },
    end: () => worker.terminate(),
  };
}

// A bug whose text has moved would end the threads, and each hunt would wait for them.
for (const bug of PLANTED) plant(bug);

const hunters = [createHunter(), createHunter()];
afterAll(() => Promise.all(hunters.map(({ end }) => end())));

describe(`the simulation finds within ${SEEDS} seeds that`, { concurrent: true }, () => {
  it.each(PLANTED.map((bug, number) => ({ ...bug, number })))(
    '$name',
    { timeout: 120_000 },
    async ({ name, shownBy, says, number }) => {
      const trail = await hunters[number % hunters.length]?.hunt(number);
      expect(trail?.broken).toMatch(/^\d+ [a-z ]+: /);
      expect(trail?.broken).toContain(says);
      if (trail?.where !== shownBy) console.log(`"${name}" is shown by ${trail?.where}`);
    },
  );
});

it.each(RULES)('`npm run rule-cost` finds what it takes out: $name', (rule) => {
  expect(plant(rule).size).toBeGreaterThan(0);
});
