import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { asker } from './control.ts';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { reloadBySignal, writeConfig } from './reloading.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

const RELOADS = 32;
/** By then everything is loaded that a reload needs. */
const WARM_UP = 12;
const EVERY_MS = 100;

interface Market {
  readonly market: string;
  readonly timeoutSeconds: number;
}
type Content = Readonly<Record<string, unknown>>;

/** Stays as it is: fourteen markets from 10 s to 60 s. */
const STAYING: readonly Market[] = Array.from({ length: 14 }, (_, index) => ({
  market: `STAY${index}_USDT`,
  timeoutSeconds: [10, 10, 12, 15, 20, 30, 60][index % 7] ?? 10,
}));

/** The markets of the good file of a round, in any order: three of them change their timeout, up to three come and go. */
function marketsOf(round: number): Market[] {
  const three = (prefix: string, timeoutOf: (index: number) => number) =>
    [0, 1, 2].map((index) => ({ market: `${prefix}${index}_USDT`, timeoutSeconds: timeoutOf(index) }));
  const changing = three('TURN', (index) => ((round + index) % 2 === 0 ? 10 : 45));
  const passing = three('PASS', () => 10).filter((_, index) => (round >> index) % 2 === 1);
  const all = [...STAYING, ...changing, ...passing];
  return [...all.slice(round % all.length), ...all.slice(0, round % all.length)];
}

const namesOf = (markets: readonly Market[]) => markets.map(({ market }) => market).toSorted();

/** Files that must be refused, and what of the answer names the place. */
const BAD: readonly (readonly [(good: Content) => string, RegExp])[] = [
  [
    (good) => JSON.stringify({ ...good, markets: [...STAYING, { market: 'LATE_USDT', timeoutSeconds: 4 }] }),
    /killswitchd\.json:1:\d+ markets\[14\]\.timeoutSeconds: found 4; allowed: /,
  ],
  [(good) => JSON.stringify(good).slice(0, -20), /killswitchd\.json:1:\d+: not valid YAML/],
  [
    (good) => JSON.stringify({ ...good, liveness: { mode: 'none' } }),
    /liveness\.mode: runs with beat, found none; restart to change it/,
  ],
];

/** What the process holds; the page may be a second old. That memory does not grow is found by `npm run soak`. */
async function heldBy(daemon: DaemonProcess) {
  await sleep(1100);
  return {
    descriptors: process.platform === 'linux' ? readdirSync(`/proc/${daemon.pid}/fd`).length : 0,
    timers: await daemon.metric('nodejs_active_resources', { type: 'Timeout' }),
  };
}

test('many reloads under load, good and bad in turns, lose no timer and no handle', {
  timeout: 120_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: marketsOf(0),
    control: true,
    config: { liveness: { mode: 'beat', ttlSeconds: 15 } },
  });
  await daemon.ready();
  const ask = asker(context, daemon.socket, 4);
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;

  let over = false;
  context.onTestFinished(() => {
    over = true;
  });
  const statuses: number[] = [];
  const repeat = async (everyMs: number, request: () => Promise<{ readonly status: number }>) => {
    while (!over) {
      statuses.push((await request().catch(() => ({ status: 0 }))).status);
      await sleep(everyMs);
    }
  };
  const load = [
    repeat(200, () => ask('/v1/beat')),
    repeat(500, () => ask('/v1/status', { method: 'GET' })),
    ...['/metrics', '/api/v1/status', '/'].map((path) => repeat(500, () => daemon.get(path))),
  ];

  const fromMs = await exchange.nowMs();
  let good = content;
  let before = { descriptors: 0, timers: 0 };
  for (let round = 0; round < RELOADS; round += 1) {
    const startedMs = performance.now();
    const byCommand = (round >> 1) % 2 === 0;
    const [spoil, names] = BAD[(round >> 1) % BAD.length] ?? [String, /./];
    if (round % 2 === 0) good = { ...content, markets: marketsOf(round / 2 + 1) };
    writeConfig(daemon, round % 2 === 0 ? JSON.stringify(good) : spoil(good));
    if (!byCommand) {
      const told = await reloadBySignal(daemon, round % 2 === 0 ? 'reload-applied' : 'reload-rejected');
      if (round % 2 === 1) expect(JSON.parse(`{${told}`).msg).toMatch(names);
    } else if (round % 2 === 0) {
      expect(await ask('/v1/reload')).toMatchObject({ status: 200, body: { result: 'applied', done: true } });
    } else {
      const { status, text } = await ask('/v1/reload');
      expect([status, text]).toEqual([422, expect.stringMatching(names)]);
    }
    const beat = (await ask('/v1/beat')).body as { markets: object };
    expect(Object.keys(beat.markets).toSorted()).toEqual(namesOf(good['markets'] as Market[]));
    if (round === WARM_UP) before = await heldBy(daemon);
    await sleep(Math.max(0, EVERY_MS - (performance.now() - startedMs)));
  }
  const held = await heldBy(daemon);
  expect(held.descriptors).toBeLessThanOrEqual(before.descriptors + 6);
  expect(held.timers).toBeLessThanOrEqual(before.timers + 6);

  expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(0);
  expect(await daemon.metric('killswitch_config_reloads_total')).toBe(RELOADS);
  expect(await daemon.metric('killswitch_config_reload_failures_total')).toBe(RELOADS / 2);
  writeConfig(daemon, JSON.stringify({ ...content, markets: STAYING }));
  await reloadBySignal(daemon, 'reload-applied');
  await eventually('the other markets gone', 10_000, async () => {
    const { body } = await daemon.get('/metrics');
    const shown = new Set([...body.matchAll(/market="([^"]+)"/g)].map(([, market = '']) => market));
    return String([...shown].toSorted()) === String(namesOf(STAYING));
  });
  expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(1);
  over = true;
  await Promise.all(load);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);

  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  // 429: on a busy machine a request that was given up may arrive behind the next one, whose nonce is higher.
  const refused = ofKind(events, 'request-refused').filter(({ status }) => status !== 429);
  expect([...ofKind(events, 'timer-fired'), ...refused]).toEqual([]);
  expect(await daemon.metric('killswitch_lapses_total')).toBe(0);
  for (const { market, timeoutSeconds } of STAYING) {
    expect(ofKind(events, 'timer-deleted', market), market).toEqual([]);
    expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThan((timeoutSeconds * 1000) / 3);
  }
  for (const index of [0, 1, 2]) {
    // The last one comes and goes once in eight good files.
    const deleted = ofKind(events, 'timer-deleted', `PASS${index}_USDT`).length;
    expect(deleted).toBeGreaterThanOrEqual(Math.floor(RELOADS / 2 / 8));
    expect(ofKind(events, 'timer-deleted', `TURN${index}_USDT`).length).toBe(1);
  }
  expect(daemon.stderr()).toBe('');
});
