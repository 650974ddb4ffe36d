/** Does with the client what each line of the standard input says, and prints what came of it as JSON. */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { KillSwitch, KillSwitchError } from '../../../src/library/bot.ts';

const client = new KillSwitch({
  raises: process.argv.includes('raises'),
  ...(process.argv[3] !== 'none' && { timeoutSeconds: Number(process.argv[3]) }),
});

async function act(word: string | undefined, value: string | undefined): Promise<unknown> {
  const seconds = value === undefined ? undefined : Number(value);
  switch (word) {
    case 'problem':
      return client.problem;
    case 'armed':
      return client.armed(value);
    case 'beat':
      return client.beat();
    case 'during': {
      let done = false;
      const beating = client.beat().finally(() => {
        done = true;
      });
      await sleep((seconds ?? 0) * 1000);
      return { armed: client.armed(), done, counted: await beating };
    }
    case 'wait_through':
      return waitThrough(value?.split(' ').map(Number) ?? []);
    case 'at':
      process.env['KILLSWITCHD_CONTROL'] = value;
      return new KillSwitch().armed();
    case 'fail':
      return client.fail();
    case 'goodbye':
      return client.goodbye(seconds);
    case 'wait_armed':
      return client.waitArmed(seconds);
    default:
      return client.run(async () => {
        if (value === 'broken') throw new Error('broken');
        return null;
      });
  }
}

/** Whether `waitArmed` has ended after each jump of the clock, and with what. */
async function waitThrough(jumps: readonly number[]) {
  let done = false;
  const waiting = client.waitArmed().finally(() => {
    done = true;
  });
  const ended: boolean[] = [];
  for (const seconds of jumps) {
    await sleep(300);
    const before = performance.now.bind(performance);
    performance.now = () => before() + seconds * 1000;
    await Promise.race([waiting, sleep(2000)]);
    ended.push(done);
  }
  return { ended, armed: await waiting };
}

for await (const line of createInterface({ input: process.stdin })) {
  const [word, ...values] = line.split(' ');
  const result = await act(word, values.length === 0 ? undefined : values.join(' ')).catch(
    (error: unknown) => {
      if (error instanceof KillSwitchError) return `KillSwitchError: ${error.message}`;
      return `raised: ${error instanceof Error ? error.message : String(error)}`;
    },
  );
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
