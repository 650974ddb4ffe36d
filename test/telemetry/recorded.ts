import { createSystemClock } from '../../src/clock.ts';
import type { Clock } from '../../src/ports.ts';
import { createLog, type LogOptions, tellNotices } from '../../src/telemetry/log.ts';

const real = createSystemClock();
/** Unix milliseconds at which a test begins. */
export const AT = 1_795_000_000_000;
export const BASES: readonly string[] = ['http://127.0.0.1:1'];

/** A log whose bytes are kept, with the recent events, on a clock that the test moves. */
export function record(options: Partial<LogOptions> = {}) {
  let [text, atMs] = ['', 0];
  const clock: Clock = {
    now: () => ({ monoMs: atMs, bootMs: atMs, wallMs: AT + atMs }),
    after: (delayMs, run) => real.after(delayMs, run),
  };
  const log = createLog({
    level: 'debug',
    format: 'json',
    clock,
    write: (bytes, done) => {
      text += Buffer.from(bytes).toString();
      setImmediate(() => done(null, bytes.length));
    },
    ...options,
  });
  const read = async (): Promise<string> => {
    await log.flush(1000);
    return text;
  };
  return {
    ...log,
    clock,
    read,
    observe: tellNotices(log, BASES),
    pass: (ms: number) => {
      atMs += ms;
    },
    lines: async (): Promise<Record<string, unknown>[]> =>
      (await read()).split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line))),
  };
}
