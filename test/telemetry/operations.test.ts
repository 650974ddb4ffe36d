import { beforeEach, expect, test } from 'vitest';
import { createLogLevels, createOperations, createTelemetry } from '../../src/daemon/telemetry.ts';
import type { LogLevel } from '../../src/ports.ts';
import { levelOf } from '../../src/telemetry/events.ts';
import { FILE, loadWell } from '../config/fixture.ts';
import { EVERY_NOTICE, OTHER_NOTICES } from './every-notice.ts';
import { AT, BASES, record } from './recorded.ts';
import { metricsOf, scrape } from './scrape.ts';

const PROBLEM = 'killswitchd.yaml:3: timeoutSeconds: found 4; allowed are 5 to 600';

/** Log, metrics and recent events as the daemon has them. */
function start(level: LogLevel = 'info') {
  const log = record({ level, onLine: (of) => metrics.logMessages.inc({ level: of }) });
  const { clock } = log;
  const controlReasons = ['foreign_origin', 'unauthorised'];
  const metrics = metricsOf({ bases: BASES, controlReasons, configHash: '0000000000ff0000', clock });
  const figures = async (...names: readonly string[]) => {
    const samples = await scrape(metrics);
    return names.map((name) => samples.get(`killswitch_${name}`));
  };
  /** Whether the last reload was good; how many were bad, and how many there were; of the last good one hash and time. */
  const RELOADS = ['last_reload_successful', 'reload_failures_total', 'reloads_total', 'hash'];
  const reloads = () =>
    figures(...[...RELOADS, 'last_reload_success_timestamp_seconds'].map((name) => `config_${name}`));
  return {
    ...log,
    log,
    metrics,
    figures,
    reloads,
    operations: createOperations(log, metrics, clock),
    levels: createLogLevels(log, clock),
  };
}

let daemon: ReturnType<typeof start>;
beforeEach(() => {
  daemon = start();
});

test('a rejected reload is an error with every mistake, on the log, the status page and the metrics', async () => {
  const problems = [PROBLEM, 'second mistake'];
  daemon.operations.reloadRejected('signal', problems);
  const kept = 'THE NEW CONFIGURATION IS REJECTED (SIGHUP): the old one stays in force, nothing has changed.';
  const msg = `${kept} 2 mistakes: (1) ${PROBLEM} (2) second mistake`;
  const line = { level: 'error', event: 'reload-rejected', trigger: 'signal', problems, msg };
  expect(await daemon.lines()).toMatchObject([line]);
  expect(daemon.recent()[0]).toMatchObject({ event: 'reload-rejected', level: 'error', market: null });
  // What is in force is what was.
  expect(await daemon.reloads()).toEqual([0, 1, 1, 0xff, AT / 1000]);
});

test.each(['reloadApplied', 'reloadUnchanged'] as const)(
  'after a bad reload %s is a success again, with its own hash and time',
  async (does) => {
    daemon.operations.reloadRejected('command', [PROBLEM]);
    daemon.pass(5000);
    daemon.operations[does]('command', '123456789abcdef0');
    expect(await daemon.reloads()).toEqual([1, 1, 2, 0x123456789abc, AT / 1000 + 5]);
    expect((await daemon.lines()).at(-1)?.['level']).toBe('info');
  },
);

test('a file that stays wrong is one error, not one for every look at it; a person who asks is always told', async () => {
  for (let look = 0; look < 20; look += 1) daemon.operations.reloadRejected('poll', [PROBLEM]);
  expect(await daemon.lines()).toHaveLength(1);
  expect(daemon.recent()).toHaveLength(1);
  daemon.operations.reloadRejected('command', [PROBLEM]);
  daemon.operations.reloadRejected('poll', ['another mistake']);
  daemon.operations.reloadUnchanged('poll', 'ff');
  daemon.operations.reloadRejected('poll', ['another mistake']);
  const rejected = (await daemon.lines()).filter(({ event }) => event === 'reload-rejected');
  expect(rejected.map(({ level }) => level)).toEqual(['error', 'error', 'error', 'error']);
  expect(await daemon.figures('config_reload_failures_total')).toEqual([23]);
});

test('refused requests are one line a minute for each reason, and every one is counted', async () => {
  for (let request = 0; request < 1000; request += 1) daemon.operations.controlRefused('foreign_origin');
  daemon.operations.controlRefused('unauthorised');
  daemon.pass(60_000);
  daemon.operations.controlRefused('foreign_origin');
  expect(await daemon.lines()).toMatchObject([
    { level: 'warn', event: 'control-refused', reason: 'foreign_origin', more: 0 },
    { reason: 'unauthorised', more: 0 },
    { reason: 'foreign_origin', more: 999 },
  ]);
  expect(await daemon.figures('control_refused_total{reason="foreign_origin"}')).toEqual([1001]);
});

test('where the control listener is and every change of the log level are said', async () => {
  daemon.operations.controlListening('unix:/run/killswitchd/control.sock');
  daemon.operations.commanded({ command: 'trip', markets: null, reason: null, sender: null, via: 'x' });
  const forged = 'x". Sender: "uid 0", as it says; over y';
  const command = { command: 'ack', markets: ['A'], reason: forged, sender: 'me', via: 'x' };
  daemon.operations.commanded(command);
  daemon.levels.set('debug', 600_000);
  expect(daemon.log.logger.level).toBe('debug');
  daemon.levels.set('info', null);
  const said = (await daemon.lines()).map(
    ({ level, event, msg }) => `${String(level)} ${String(event)}: ${String(msg)}`,
  );
  expect(said).toEqual([
    'info control-listening: Beats and commands: unix:/run/killswitchd/control.sock',
    "info operator-command: An operator's command: trip, all markets. No reason was given. The sender does not say who it is; over x.",
    `info operator-command: An operator's command: ack A. Reason: ${JSON.stringify(forged)}. Sender: "me", as it says; over x.`,
    'info log-level-changed: The log level is debug until 11:16:40 UTC (in 10 min); it was info.',
    'info log-level-changed: The log level is info from now on; it was debug.',
  ]);
});

test.each([
  ['info', 'error'],
  ['error', 'info'],
] as const)('a change from %s to %s is a line whichever of the two would hide it', async (from, to) => {
  const quiet = start(from);
  quiet.levels.set(to, null);
  expect(await quiet.lines()).toMatchObject([{ event: 'log-level-changed', from, to }]);
  expect(quiet.log.logger.level).toBe(to);
});

test('every warning and error of the core has a counter, but for the last line of a process', async () => {
  for (const notice of [...Object.values(EVERY_NOTICE), ...OTHER_NOTICES]) {
    if (!['warn', 'error'].includes(levelOf(notice)) || notice.kind === 'stopped') continue;
    const { metrics, observe, lines, clock, figures } = start();
    const sum = async () =>
      [...(await scrape(metrics))].reduce(
        (all, [name, value]) => all + (/^killswitch_(?!log_)\w+_total\b/.test(name) ? value : 0),
        0,
      );
    const before = await sum();
    metrics.observe(notice, clock.now());
    observe(notice, clock.now());
    const { level, msg } = (await lines())[0] ?? {};
    expect(await sum(), String(msg)).toBeGreaterThan(before);
    expect(await figures(`log_messages_total{level="${String(level)}"}`)).toEqual([1]);
  }
});

test('of bots whose signs of life cannot be seen ten are told of in ten seconds, and one line names the others', async () => {
  const { clock, pass } = daemon;
  let text = '';
  const { log, observers, onEvidenceProblem } = createTelemetry({
    config: loadWell(FILE).config,
    clock,
    bases: BASES,
    nodeVersion: '24',
    secrets: () => [],
    write: (bytes, done) => {
      text += Buffer.from(bytes).toString();
      setImmediate(() => done(null, bytes.length));
    },
  });
  for (let bot = 0; bot < 12; bot += 1) onEvidenceProblem(`b${bot}`, 'HTTP 503, not 2xx');
  pass(10_000);
  for (const observe of observers) observe({ kind: 'resumed', market: 'BTC_USDT' }, clock.now());
  await log.flush(1000);
  const said = [...text.matchAll(/"msg":"([^"]*)"/g)].map(([, msg]) => msg);
  expect(said.filter((msg) => msg?.startsWith('Bot '))).toHaveLength(10);
  expect(said).toContain('evidence-problem: 2 more lines of it within 10 s: b10, b11.');
});
