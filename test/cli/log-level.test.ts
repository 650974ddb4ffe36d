import { describe, expect, it } from 'vitest';
import { daemon, run } from './stage.ts';

async function logLevel(args: readonly string[]) {
  let level = 'info';
  const fake = await daemon(({ body }) => {
    level = (body as { level?: string }).level ?? level;
    return { json: { level } };
  });
  const result = await run(['log-level', ...args, '--control', fake.address]);
  return { ...result, asked: fake.asked };
}

describe('log-level', () => {
  it('prints the level in force', async () => {
    const { code, out, asked } = await logLevel([]);
    expect({ code, out }).toEqual({ code: 0, out: ['info'] });
    expect(asked).toMatchObject([{ method: 'POST', path: '/v1/log-level', body: {} }]);
  });

  it('sets it, for a while or until it is changed', async () => {
    const lasting = await logLevel(['warn']);
    expect(lasting.out).toEqual(['The log level is warn until it is changed or the daemon ends.']);
    expect(lasting.asked[0]?.body).toEqual({ level: 'warn' });
    const passing = await logLevel(['debug', '--for', '10m']);
    expect(passing.out).toEqual(['The log level is debug for 10m, and then the configured one again.']);
    expect(passing.asked[0]?.body).toEqual({ level: 'debug', forSeconds: 600 });
  });

  it.each([
    [['debgu'], /found "debgu"; allowed: debug, info, warn, error, fatal; did you mean debug\?/],
    [['--for', '10m'], /--for: found without a level/],
    [['debug', '--for', '10'], /--for: found "10"; .*write 10s/],
  ])('%j ends with 64 and asks the daemon nothing', async (args, message) => {
    const { code, err, asked } = await logLevel(args);
    expect(code).toBe(64);
    expect(err[0]).toMatch(message);
    expect(asked).toEqual([]);
  });
});
