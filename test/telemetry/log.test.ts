import { expect, test } from 'vitest';
import type { Notice } from '../../src/core/notice.ts';
import { EVERY_NOTICE, OTHER_NOTICES } from './every-notice.ts';
import { AT, record } from './recorded.ts';

test('every kind of notice is one line with time, level, code and a sentence', async () => {
  const log = record();
  const { reloaded, removed, deleted, held } = EVERY_NOTICE;
  const added = Array.from({ length: 30 }, (_, index) => `M${index}_USDT`);
  const firesByWallMs = AT + 30_000;
  const notices: readonly Notice[] = [
    ...Object.values(EVERY_NOTICE),
    ...OTHER_NOTICES,
    { ...held, untilWallMs: null },
    { ...reloaded, added, removed: [], changed: [] },
    { ...reloaded, added: [], removed: [], changed: [] },
    { ...removed, how: 'handed_off' },
    { ...deleted, mayHaveFired: true },
    { ...deleted, isFinal: false },
    { ...EVERY_NOTICE.tripped, isFinal: false },
    { ...EVERY_NOTICE['outage-began'], standsIn: 1 },
    { ...EVERY_NOTICE['outage-began'], expiryWallMs: null },
    { ...EVERY_NOTICE.stall, what: 'clock-step', byMs: -2500 },
    // The moment is the latest one: a successor who has until then may come too late.
    ...(['unrenewed', 'policy', 'unheard', 'may-have-fired'] as const).map(
      (why): Notice => ({
        kind: 'stopped',
        left: [{ market: 'BTC_USDT', firesByWallMs, why, confirmed: true }],
      }),
    ),
    { kind: 'stopped', left: [{ market: 'BTC_USDT', firesByWallMs, why: 'policy', confirmed: false }] },
    { kind: 'stopped', left: [] },
  ];
  for (const notice of notices) log.observe(notice, log.clock.now());
  const lines = await log.lines();
  expect(lines).toHaveLength(notices.length);
  expect(new Set(lines.map(({ time }) => time))).toEqual(new Set(['2026-11-18T11:06:40.000Z']));
  const said = lines.map(({ level, event, msg }) => `${String(level)} ${String(event)}: ${String(msg)}\n`);
  // `npx vitest run test/telemetry/log.test.ts -u` writes it anew.
  await expect(said.join('')).toMatchFileSnapshot('sentences.txt');
});

test('the first failure and the first renewal of a market are told, their repeats at debug, and counted', async () => {
  const log = record({ level: 'info' });
  const observe = (notice: Notice) => log.observe(notice, log.clock.now());
  for (let streak = 1; streak <= 12; streak += 1) observe({ ...EVERY_NOTICE['attempt-failed'], streak });
  observe(EVERY_NOTICE.recovered);
  observe(EVERY_NOTICE.renewed);
  observe({ ...EVERY_NOTICE.renewed, first: true, slackRatio: null });
  log.logger.level = 'debug';
  observe(EVERY_NOTICE.renewed);
  expect(await log.lines()).toMatchObject([
    { level: 'warn', event: 'attempt-failed', market: 'BTC_USDT', reason: 'timeout' },
    { level: 'info', event: 'recovered', market: 'BTC_USDT', failures: 12 },
    { level: 'info', event: 'armed' },
    { level: 'debug', event: 'renewed' },
  ]);
});

test('an outage of a thousand markets takes tens of lines, and every market that lapsed is named', async () => {
  const log = record({ level: 'info' });
  const start = log.clock.now();
  const names = Array.from({ length: 1000 }, (_, index) => `M${index}_USDT`);
  const each = (afterMs: number, ...kinds: (keyof typeof EVERY_NOTICE)[]) => {
    for (const [index, market] of names.entries()) {
      const now = { ...start, monoMs: start.monoMs + afterMs + index * 6 };
      for (const kind of kinds) log.observe({ ...EVERY_NOTICE[kind], market, first: true } as Notice, now);
    }
  };
  log.observe(EVERY_NOTICE['outage-began'], start);
  each(0, 'attempt-failed');
  each(50_000, 'overdue');
  each(75_000, 'lapsed', 'recovered', 'renewed');
  log.observe(EVERY_NOTICE['outage-ended'], { ...start, monoMs: start.monoMs + 100_000 });
  const lines = await log.lines();
  expect(lines.length).toBeLessThan(70);
  const lapsed = lines.flatMap(({ event, of, market, markets, level }) => {
    if (event === 'lapsed') return [String(market)];
    if (of !== 'lapsed') return [];
    expect(level).toBe('error');
    return markets as string[];
  });
  expect(lapsed.toSorted()).toEqual(names.toSorted());
  expect(Math.max(...lines.map((line) => JSON.stringify(line).length))).toBeLessThan(10_000);
  expect(log.recent().map(({ event }) => event)).toContain('outage-ended');
});

test('where 500 bots die together each is named', async () => {
  const log = record({ level: 'info' });
  const names = Array.from({ length: 500 }, (_, index) => `bot${index}`);
  for (const bot of names) log.observe({ ...EVERY_NOTICE.bot, bot, state: 'stale' }, log.clock.now());
  log.observe(EVERY_NOTICE['outage-ended'], { ...log.clock.now(), monoMs: 100_000 });
  const lines = await log.lines();
  const one = lines.flatMap(({ event, bot }) => (event === 'bot-stale' ? [bot] : []));
  const more = lines.flatMap(({ of, bots }) => (of === 'bot-stale' ? (bots as string[]) : []));
  expect([...one, ...more]).toEqual(names);
  expect(lines.find(({ of }) => of === 'bot-stale')?.['msg']).toContain('10 s: bot10, bot11, ');
});

test('a stop that leaves ten thousand timers names each, in lines that a journal takes', async () => {
  const log = record({ level: 'info' });
  const left = Array.from({ length: 10_000 }, (_, index) => ({
    market: `M${index}_USDT`,
    firesByWallMs: AT + 60_000 - index,
    why:
      index === 0 ? ('unconfirmed' as const) : index < 30 ? ('may-have-fired' as const) : ('policy' as const),
  }));
  for (const { market } of left.slice(0, 30))
    log.observe({ ...EVERY_NOTICE.deleted, market }, log.clock.now());
  log.observe({ kind: 'stopped', left: left.map((one) => ({ ...one, confirmed: true })) }, log.clock.now());
  const lines = await log.lines();
  expect(Math.max(...lines.map((line) => JSON.stringify(line).length))).toBeLessThan(16_000);
  expect(lines.at(-1)).toMatchObject({ event: 'stopped', level: 'error', leftCount: 10_000 });
  expect(lines.find(({ of }) => of === 'deleted')).toMatchObject({ level: 'info', more: 20 });
  const named = lines.flatMap(({ event, left: some }) =>
    event === 'left-armed' ? (some as typeof left) : [],
  );
  const [first, ...others] = left;
  const fired = others.slice(0, 29);
  expect(named).toEqual([first, ...fired.toReversed(), ...others.slice(29).toReversed()]);
  // A journal holds the sentences alone.
  const says = lines.flatMap(({ event, msg }) => (event === 'left-armed' ? [String(msg)] : []));
  const inWords = says.flatMap((text) => [...text.matchAll(/M\d+_USDT/g)].map(([name]) => name));
  expect(inWords).toEqual(named.map(({ market }) => market));
  expect(says[0]).toMatch(
    /^NOT CONFIRMED DELETED, with the moment \(UTC\) by which each fires: M0_USDT [\d:]{8}\.$/,
  );
  expect(says[1]).toMatch(/^MAY HAVE FIRED before the delete was confirmed: M29_USDT, M28_USDT, [^(]*\.$/);
});

test('recent events are what a person wants to read, the newest first, and no more than fit', () => {
  const log = record();
  for (const [index, notice] of Object.values(EVERY_NOTICE).entries())
    log.observe(notice, { ...log.clock.now(), wallMs: index });
  for (let index = 0; index < 100; index += 1) log.observe(EVERY_NOTICE.renewed, log.clock.now());
  const events = log.recent();
  expect(events[0]).toMatchObject({ event: 'stopped', level: 'error', market: null });
  expect(events[1]).toMatchObject({ event: 'deleted', level: 'info', market: 'BTC_USDT' });
  expect(events.filter(({ level }) => level === 'debug')).toEqual([]);
  for (let index = 0; index < 200; index += 1)
    log.observe(EVERY_NOTICE.lapsed, { ...log.clock.now(), monoMs: index * 20_000 });
  expect(log.recent()).toHaveLength(100);
});

test('secrets do not come out, however they get into a line', async () => {
  const log = record({ secrets: () => ['hunter2hunter2', ''] });
  const headers = { 'X-TXC-APIKEY': 'AAA-1', 'x-txc-payload': 'AAA-2', 'X-TXC-Signature': 'AAA-3' };
  const request = { headers, authorization: 'AAA-4', deep: [{ api_secret: 'AAA-5' }] };
  const cause = Object.assign(new Error('why'), { request });
  const error = Object.assign(new Error('refused', { cause }), { request, code: 'EBAD' });
  log.logger.info({ event: 'x', key: 'AAA-6', payload: 'AAA-7', request }, 'sent');
  log.logger.error({ event: 'x', err: error }, 'failed');
  log.logger.child({ secret: 'AAA-8' }).warn({ event: 'x' }, 'the reply said hunter2hunter2');
  log.logger.error(error);
  const text = await log.read();
  expect(text).not.toMatch(/AAA|hunter2/);
  expect(text).toContain('EBAD');
  expect(text).toContain('why');
});

test('journal lines are the priority that journald reads, the code and a sentence on one line', async () => {
  const log = record({ format: 'journal' });
  log.logger.error({ event: 'lapsed', gapMs: 3 }, 'It lapsed.\n<6>armed: All is well.');
  log.logger.warn({ event: 'b' }, 'b');
  log.logger.info('without a code');
  log.logger.debug({ event: 'd' }, 'd');
  const lines = [
    '<3>lapsed: It lapsed. <6>armed: All is well.',
    '<4>b: b',
    '<6>without a code',
    '<7>d: d',
    '',
  ];
  expect((await log.read()).split('\n')).toEqual(lines);
});

test('text lines are a time and a sentence, and details cannot forge a line of their own', async () => {
  const log = record({ format: 'text' });
  log.observe(EVERY_NOTICE['all-armed'], log.clock.now());
  log.observe({ ...EVERY_NOTICE.altered, detail: 'x\n00:00:00  All is well\u001b[2J' }, log.clock.now());
  log.observe(EVERY_NOTICE.overdue, log.clock.now());
  log.logger.info({ event: 'no-sentence' });
  const lines = (await log.read()).split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\dZ {2}All 3 markets are armed, 412 ms after the start\.$/);
  expect(lines[1]).toMatch(/^\d\d:\d\d:\d\dZ {2}warning {2}BTC_USDT: .*x 00:00:00 {2}All is well \[2J/);
  expect(lines[2]).toMatch(/^\d\d:\d\d:\d\dZ {2}ERROR {2}BTC_USDT MAY BE UNARMED/);
});
