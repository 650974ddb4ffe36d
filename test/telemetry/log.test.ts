import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Clock } from '../../src/ports.ts';
import { createLog, type LogOptions, logNotices } from '../../src/telemetry/log.ts';
import { EVERY_NOTICE, OTHER_NOTICES } from './every-notice.ts';

const real = createSystemClock();
const AT = 1_795_000_000_000;
const clock: Clock = {
  now: () => ({ ...real.now(), wallMs: AT }),
  after: (delayMs, run) => real.after(delayMs, run),
};
const CONTEXT = { bases: ['http://127.0.0.1:1'] };

/** A log whose bytes are kept. */
function record(options: Partial<LogOptions> = {}) {
  let text = '';
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
  const lines = async (): Promise<Record<string, unknown>[]> =>
    (await read())
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  return { ...log, read, lines, observe: logNotices(log.logger, CONTEXT) };
}

describe('log', () => {
  test('every kind of notice is one line with time, level, code and a sentence', async () => {
    const log = record();
    const notices = [...Object.values(EVERY_NOTICE), ...OTHER_NOTICES];
    for (const notice of notices) log.observe(notice, clock.now());
    const lines = await log.lines();
    expect(lines).toHaveLength(notices.length);
    for (const line of lines) {
      expect(line['time']).toBe('2026-11-18T11:06:40.000Z');
      expect(['debug', 'info', 'warn', 'error']).toContain(line['level']);
      expect(line['event']).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(line['msg']).toMatch(/^\S.*[.]$/);
      expect(line['msg']).not.toMatch(/undefined|NaN|\[object/);
    }
  });

  test('an on-call trader can act on what the worst lines say', async () => {
    const log = record();
    for (const kind of ['lapsed', 'outage-began', 'unauthorised', 'refused', 'stopped'] as const) {
      log.observe(EVERY_NOTICE[kind], clock.now());
    }
    const said = (await log.lines()).map(({ level, msg }) => `${String(level)}: ${String(msg)}`);
    expect(said).toEqual([
      'error: BTC_USDT LAPSED: its timer ran out and the exchange cancelled its orders. No renewal was confirmed for 12 s. The daemon arms it again. Check which orders the bot has now.',
      'error: NO RENEWAL GETS THROUGH to http://127.0.0.1:1 (no answer after 3 s). The timers run on at the exchange and fire if this lasts. One market is tried without pause; the first success renews the others, the most urgent first.',
      'error: THE API KEY IS REFUSED (invalid key). No timer can be renewed: every armed timer fires when its time is up and its orders are cancelled. Check the key, its permissions and its IP list; the secret files are read every second. Asked again in time for every armed timer, then every 60 s.',
      'error: BTC_USDT is REFUSED by the exchange (code 31: market not available). No new timer protects its orders; one that still stands will fire. Other markets go on. Asked again in 60 s.',
      'error: Stopped. NOT CONFIRMED DELETED: BTC_USDT fires by 11:07:43 UTC (in 63 s). Expect the orders to be cancelled by then unless the timer is deleted or renewed. Left armed on purpose: ETH_USDT fires by 11:07:10 UTC (in 30 s). The orders are cancelled by then unless somebody renews the timer.',
    ]);
  });

  test('a handoff says which timers it had no time to renew once more', async () => {
    const log = record();
    const firesByWallMs = clock.now().wallMs + 30_000;
    log.observe(
      {
        kind: 'stopped',
        left: [
          { market: 'BTC_USDT', firesByWallMs, why: 'unrenewed' },
          { market: 'ETH_USDT', firesByWallMs: firesByWallMs + 30_000, why: 'policy' },
        ],
      },
      clock.now(),
    );
    const [line] = await log.lines();
    expect(String(line?.msg)).toMatch(
      /^Stopped\. NOT RENEWED ONCE MORE: BTC_USDT fires by .+ \(in 30 s\)\. .*successor.* Left armed on purpose: ETH_USDT fires by /,
    );
    // The moment is the latest one: who has until then may come too late.
    expect(String(line?.msg)).toContain('by then, or sooner, unless the successor');
    expect(line?.level).toBe('warn');
  });

  test('what an operator did to a market, and what follows from it, is said in one sentence each', async () => {
    const log = record();
    const { held, released, tripped, reloaded, removed, deleted } = EVERY_NOTICE;
    const many = Array.from({ length: 30 }, (_, index) => `M${index}_USDT`);
    for (const notice of [
      held,
      { ...held, why: 'disarmed', untilWallMs: null },
      { ...held, why: 'tripped', untilWallMs: null },
      { ...held, why: 'lapsed', untilWallMs: null },
      released,
      { ...released, why: 'operator' },
      tripped,
      reloaded,
      { ...reloaded, added: many, removed: [], changed: [], moved: [] },
      { ...reloaded, added: [], removed: [], changed: [], moved: [] },
      EVERY_NOTICE['handed-over'],
      removed,
      { ...removed, how: 'kept' },
      { ...removed, how: 'handed_off' },
      { ...removed, how: 'fired' },
      deleted,
      { ...deleted, mayHaveFired: true },
    ] as const) {
      log.observe(notice, clock.now());
    }
    const said = (await log.lines()).map(
      ({ level, event, msg }) => `${String(level)} ${String(event)}: ${String(msg)}`,
    );
    expect(said).toEqual([
      'info held: BTC_USDT is paused until 11:16:40 UTC (in 10 min): it is not renewed, and nothing new guards its orders. The pause ends by itself.',
      'info held: BTC_USDT is disarmed: it is not renewed, and nothing new guards its orders until somebody arms it.',
      'warn held: BTC_USDT is TRIPPED by an operator: its timer is cut to 5 s, and the exchange cancels its orders. It is not armed again until somebody arms it.',
      'warn held: BTC_USDT is NOT armed again after its lapse (onLapse: hold), until somebody arms it.',
      'info released: BTC_USDT is under guard again: its pause is over.',
      'info released: BTC_USDT is under guard again: an operator asked for it.',
      'warn tripped: BTC_USDT: its timer is cut short, as the exchange confirmed; its orders are cancelled by 11:06:46 UTC (in 6 s).',
      'info reloaded: The markets of the new configuration are in force: added SOL_USDT; changed BTC_USDT; removed ETH_USDT; moved to another shard, and guarded here as well for a while, XRP_USDT.',
      `info reloaded: The markets of the new configuration are in force: added ${many.slice(0, 20).join(', ')} and 10 more.`,
      'info reloaded: The new configuration is in force; its markets are the same.',
      'info handed-over: Another shard has taken over by now: XRP_USDT.',
      'info removed: ETH_USDT has left the configuration: its timer is deleted, as the exchange confirmed, or there was none.',
      'info removed: ETH_USDT has left the configuration: its timer is left as it is, and fires unless somebody renews it.',
      'info removed: ETH_USDT has left the configuration: its timer was renewed once more in full, and fires unless somebody else renews it.',
      'warn removed: ETH_USDT has left the configuration: its time was up before its timer was deleted. If it had a timer, the exchange has cancelled its orders.',
      'info deleted: BTC_USDT: the timer is deleted, as the exchange confirmed; its orders stay.',
      'warn deleted: BTC_USDT: there is no timer any more, as the exchange confirmed. It may have fired before it was deleted: check which orders are left.',
    ]);
  });

  test('the first failure is a warning, its repeats are counted and said at the recovery', async () => {
    const log = record({ level: 'info' });
    for (let streak = 1; streak <= 12; streak += 1) {
      log.observe({ ...EVERY_NOTICE['attempt-failed'], streak }, clock.now());
    }
    log.observe(EVERY_NOTICE.recovered, clock.now());
    expect(await log.lines()).toMatchObject([
      { level: 'warn', event: 'attempt-failed', market: 'BTC_USDT', reason: 'timeout' },
      { level: 'info', event: 'recovered', market: 'BTC_USDT', failures: 12 },
    ]);
  });

  test('a renewal is a line only at debug, but the first one of a market always is', async () => {
    const log = record({ level: 'info' });
    log.observe(EVERY_NOTICE.renewed, clock.now());
    log.observe({ ...EVERY_NOTICE.renewed, first: true, slackRatio: null }, clock.now());
    expect(log.level()).toBe('info');
    log.setLevel('debug');
    expect(log.level()).toBe('debug');
    log.observe(EVERY_NOTICE.renewed, clock.now());
    expect((await log.lines()).map(({ event }) => event)).toEqual(['armed', 'renewed']);
  });

  test('ten thousand markets that fail together do not flood the log, but every lapse is named', async () => {
    const log = record({ level: 'info' });
    const now = clock.now();
    for (let index = 0; index < 1000; index += 1) {
      const market = `M${index}_USDT`;
      log.observe({ ...EVERY_NOTICE['attempt-failed'], market }, now);
      log.observe({ ...EVERY_NOTICE.lapsed, market }, now);
    }
    log.observe(EVERY_NOTICE['authorised-again'], { ...now, monoMs: now.monoMs + 10_001 });
    const lines = await log.lines();
    const count = (code: string) => lines.filter(({ event }) => event === code).length;
    expect(count('attempt-failed')).toBe(50);
    expect(count('lapsed')).toBe(1000);
    expect(lines.find(({ event }) => event === 'repeats')).toMatchObject({ of: 'attempt-failed', more: 950 });
  });

  test('secrets do not come out, however they get into a line', async () => {
    const log = record({ secrets: () => ['hunter2hunter2', ''] });
    const request = {
      headers: { 'X-TXC-APIKEY': 'AAA-1', 'x-txc-payload': 'AAA-2', 'X-TXC-Signature': 'AAA-3' },
      authorization: 'AAA-4',
      deep: [{ api_secret: 'AAA-5' }],
    };
    const error = Object.assign(
      new Error('refused', { cause: Object.assign(new Error('why'), { request }) }),
      {
        request,
        code: 'EBAD',
      },
    );
    log.logger.info({ event: 'x', key: 'AAA-6', payload: 'AAA-7', request }, 'sent');
    log.logger.error({ event: 'x', err: error }, 'failed');
    log.logger.child({ secret: 'AAA-8' }).warn({ event: 'x' }, 'the reply said hunter2hunter2');
    log.logger.error(error);
    const text = await log.read();
    expect(text).not.toMatch(/AAA|hunter2/);
    expect(text).toContain('EBAD');
    expect(text).toContain('why');
  });

  test('journal lines begin with the priority that journald reads', async () => {
    const log = record({ format: 'journal' });
    log.logger.error({ event: 'a' }, 'a');
    log.logger.warn({ event: 'b' }, 'b');
    log.logger.info({ event: 'c' }, 'c');
    log.logger.debug({ event: 'd' }, 'd');
    const starts = (await log.read()).split('\n').map((line) => line.slice(0, 4));
    expect(starts).toEqual(['<3>{', '<4>{', '<6>{', '<7>{', '']);
  });

  test('text lines are a time and a sentence, and details cannot forge a line of their own', async () => {
    const log = record({ format: 'text' });
    log.observe(EVERY_NOTICE['all-armed'], clock.now());
    log.observe({ ...EVERY_NOTICE.altered, detail: 'x\n00:00:00  All is well\u001b[2J' }, clock.now());
    log.observe(EVERY_NOTICE.overdue, clock.now());
    log.logger.info({ event: 'no-sentence' });
    const lines = (await log.read()).split('\n');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d {2}All 3 markets are armed, 412 ms after the start\.$/);
    expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d {2}warning {2}BTC_USDT: .*x 00:00:00 {2}All is well \[2J/);
    expect(lines[2]).toMatch(/^\d\d:\d\d:\d\d {2}ERROR {2}BTC_USDT MAY BE UNARMED/);
  });

  test('every line that is written is counted by its level', async () => {
    const levels: string[] = [];
    const log = record({ level: 'info', onLine: (level) => levels.push(level) });
    log.logger.error({ event: 'a' }, 'a');
    log.logger.debug({ event: 'b' }, 'b');
    log.logger.warn({ event: 'c' }, 'c');
    expect(levels).toEqual(['error', 'warn']);
  });
});
