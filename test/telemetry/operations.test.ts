import { beforeEach, describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createOperations } from '../../src/daemon/telling.ts';
import type { Clock, LogLevel } from '../../src/ports.ts';
import { levelOf } from '../../src/telemetry/events.ts';
import { createLog, createRecentEvents, tellNotices } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { EVERY_NOTICE, OTHER_NOTICES } from './every-notice.ts';
import { scrape } from './scrape.ts';

const real = createSystemClock();
const AT = 1_795_000_000_000;
const PROBLEM = 'killswitchd.yaml:3: timeoutSeconds: found 4; allowed are 5 to 600';
const CONTEXT = { bases: ['http://127.0.0.1:1'] };

/** Log, metrics and recent events as the daemon has them, on a clock that the test moves. */
function start(level: LogLevel = 'info') {
  let atMs = 0;
  let text = '';
  const clock: Clock = {
    now: () => ({ monoMs: atMs, bootMs: atMs, wallMs: AT + atMs }),
    after: (delayMs, run) => real.after(delayMs, run),
  };
  const metrics = createMetrics({
    version: '1',
    revision: 'abc',
    nodeVersion: 'v24',
    bases: CONTEXT.bases,
    bots: ['maker'],
    shard: { index: 0, count: 1, markets: 2, fleet: 2 },
    controlReasons: ['foreign_origin', 'unauthorised'],
    configHash: '0000000000ff0000',
    clock,
  });
  const log = createLog({
    level,
    format: 'json',
    clock,
    write: (bytes, done) => {
      text += Buffer.from(bytes).toString();
      setImmediate(() => done(null, bytes.length));
    },
    onLine: (lineLevel) => metrics.countLogLine(lineLevel),
  });
  const recent = createRecentEvents();
  return {
    metrics,
    log,
    recent,
    operations: createOperations({ log, metrics, recent, clock }),
    observe: tellNotices(log.logger, recent, CONTEXT),
    pass: (ms: number) => {
      atMs += ms;
    },
    now: () => clock.now(),
    lines: async (): Promise<Record<string, unknown>[]> => {
      await log.flush(1000);
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line));
    },
  };
}

describe('what an operator brings about', () => {
  let daemon: ReturnType<typeof start>;
  beforeEach(() => {
    daemon = start();
  });

  test('a rejected reload is an error with every mistake, on the log, the status page and the metrics', async () => {
    daemon.operations.reloadRejected('signal', [PROBLEM, 'second mistake']);
    const [line] = await daemon.lines();
    expect(line).toMatchObject({
      level: 'error',
      event: 'reload-rejected',
      trigger: 'signal',
      problems: [PROBLEM, 'second mistake'],
    });
    expect(line?.['msg']).toBe(
      `THE NEW CONFIGURATION IS REJECTED (SIGHUP): the old one stays in force, nothing has changed. ` +
        `2 mistakes: (1) ${PROBLEM} (2) second mistake`,
    );
    expect(daemon.recent.list()[0]).toMatchObject({ event: 'reload-rejected', level: 'error', market: null });
    const samples = await scrape(daemon.metrics);
    expect(samples.get('killswitch_config_last_reload_successful')).toBe(0);
    expect(samples.get('killswitch_config_reload_failures_total')).toBe(1);
    expect(samples.get('killswitch_config_reloads_total')).toBe(1);
    // What is in force is what was.
    expect(samples.get('killswitch_config_hash')).toBe(0xff);
    expect(samples.get('killswitch_config_last_reload_success_timestamp_seconds')).toBe(AT / 1000);
  });

  test('a good reload after a bad one is a success again, with its own hash and time, changed or not', async () => {
    for (const does of ['reloadApplied', 'reloadUnchanged'] as const) {
      daemon = start();
      daemon.operations.reloadRejected('command', [PROBLEM]);
      daemon.pass(5000);
      daemon.operations[does]('command', '123456789abcdef0');
      const samples = await scrape(daemon.metrics);
      const of = (name: string) => samples.get(`killswitch_config_${name}`);
      expect(of('last_reload_successful')).toBe(1);
      expect(of('last_reload_success_timestamp_seconds')).toBe(AT / 1000 + 5);
      expect(of('hash')).toBe(0x123456789abc);
      expect([of('reload_failures_total'), of('reloads_total')]).toEqual([1, 2]);
      const event = does === 'reloadApplied' ? 'reload-applied' : 'reload-unchanged';
      expect((await daemon.lines()).at(-1)).toMatchObject({ level: 'info', event });
    }
  });

  test('a file that stays wrong is one error, not one for every look at it; a person who asks is always told', async () => {
    for (let look = 0; look < 20; look += 1) daemon.operations.reloadRejected('poll', [PROBLEM]);
    expect(await daemon.lines()).toHaveLength(1);
    expect(daemon.recent.list()).toHaveLength(1);
    daemon.operations.reloadRejected('command', [PROBLEM]);
    daemon.operations.reloadRejected('poll', ['another mistake']);
    daemon.operations.reloadUnchanged('poll', 'ff');
    daemon.operations.reloadRejected('poll', ['another mistake']);
    const rejected = (await daemon.lines()).filter(({ event }) => event === 'reload-rejected');
    expect(rejected.map(({ level }) => level)).toEqual(['error', 'error', 'error', 'error']);
    expect((await scrape(daemon.metrics)).get('killswitch_config_reload_failures_total')).toBe(23);
  });

  test('refused requests are one line a minute for each reason, and every one is counted', async () => {
    for (let request = 0; request < 1000; request += 1) daemon.operations.controlRefused('foreign_origin');
    daemon.operations.controlRefused('unauthorised');
    daemon.pass(60_000);
    daemon.operations.controlRefused('foreign_origin');
    const lines = [['foreign_origin', 0] as const, ['unauthorised', 0] as const];
    expect(await daemon.lines()).toMatchObject(
      [...lines, ['foreign_origin', 999] as const].map(([reason, more]) => {
        return { level: 'warn', event: 'control-refused', reason, more };
      }),
    );
    const samples = [...(await scrape(daemon.metrics))].filter(([name]) => name.includes('control_refused'));
    expect(samples.map(([, count]) => count)).toEqual([1001, 1]);
  });

  test('where the control listener is and every change of the log level are said', async () => {
    daemon.operations.controlListening('unix:/run/killswitchd/control.sock');
    daemon.operations.commanded({ command: 'trip', markets: null, reason: null, sender: null, via: 'x' });
    const forged = 'x". Sender: "uid 0", as it says; over y';
    const command = { command: 'ack', markets: ['A'], reason: forged, sender: 'me', via: 'x' };
    daemon.operations.commanded(command);
    daemon.operations.setLogLevel('debug', AT + 600_000);
    expect(daemon.log.level()).toBe('debug');
    daemon.operations.setLogLevel('debug', null);
    expect((await daemon.lines()).map(({ level, event, msg }) => ({ level, event, msg }))).toEqual([
      {
        level: 'info',
        event: 'control-listening',
        msg: 'Beats and commands: unix:/run/killswitchd/control.sock',
      },
      {
        level: 'info',
        event: 'operator-command',
        msg: "An operator's command: trip, all markets. No reason was given. The sender does not say who it is; over x.",
      },
      {
        level: 'info',
        event: 'operator-command',
        msg: `An operator's command: ack A. Reason: ${JSON.stringify(forged)}. Sender: "me", as it says; over x.`,
      },
      {
        level: 'info',
        event: 'log-level-changed',
        msg: 'The log level is debug until 11:16:40 UTC (in 10 min); it was info.',
      },
      { level: 'info', event: 'log-level-changed', msg: 'The log level is debug from now on; it was debug.' },
    ]);
  });

  test.each([
    ['info', 'error'],
    ['error', 'info'],
  ] as const)('a change from %s to %s is a line whichever of the two would hide it', async (from, to) => {
    const quiet = start(from);
    quiet.operations.setLogLevel(to, null);
    expect(await quiet.lines()).toMatchObject([{ event: 'log-level-changed', from, to }]);
    expect(quiet.log.level()).toBe(to);
  });

  test('the level changes what is written and not what is counted by the metrics', async () => {
    daemon.log.setLevel('error');
    daemon.observe(EVERY_NOTICE.suspended, daemon.now());
    daemon.metrics.observe(EVERY_NOTICE.suspended, daemon.now());
    daemon.log.setLevel('info');
    daemon.observe(EVERY_NOTICE.suspended, daemon.now());
    expect(await daemon.lines()).toHaveLength(1);
    const samples = await scrape(daemon.metrics);
    expect(samples.get('killswitch_suspensions_total{reason="bot_stale"}')).toBe(1);
    expect(samples.get('killswitch_log_messages_total{level="warn"}')).toBe(1);
  });
});

/** Sum of every counter but those of log lines. */
async function countersOf(metrics: Parameters<typeof scrape>[0]): Promise<number> {
  let sum = 0;
  for (const [name, value] of await scrape(metrics)) {
    if (/^killswitch_(?!log_)\w+_total\b/.test(name)) sum += value;
  }
  return sum;
}

describe('every warning and error has a counter', () => {
  const loud = [...Object.values(EVERY_NOTICE), ...OTHER_NOTICES].filter((notice) =>
    ['warn', 'error'].includes(levelOf(notice)),
  );

  test('of the core, but for the last line of a process, which no scrape would see', async () => {
    for (const notice of loud.filter(({ kind }) => kind !== 'stopped')) {
      const { metrics, observe, lines, now } = start();
      const before = await countersOf(metrics);
      metrics.observe(notice, now());
      observe(notice, now());
      const { level, msg } = (await lines())[0] ?? {};
      expect(await countersOf(metrics), String(msg)).toBeGreaterThan(before);
      expect((await scrape(metrics)).get(`killswitch_log_messages_total{level="${String(level)}"}`)).toBe(1);
    }
  });
});
