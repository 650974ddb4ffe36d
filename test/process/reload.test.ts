import { readdirSync, readFileSync } from 'node:fs';
import { expect, type TestContext, test } from 'vitest';
import { type Ask, asker } from './control.ts';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { reloadBySignal, writeConfig } from './reloading.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

const RELOADS = 32;
/** By then everything is loaded and compiled that a reload needs. */
const WARM_UP = 12;
const EVERY_MS = 100;

interface Market {
  readonly market: string;
  readonly timeoutSeconds: number;
}

const named = (prefix: string, index: number) => `${prefix}${String(index).padStart(2, '0')}_USDT`;

/** Stays as it is: fourteen markets from 10 s to 60 s. */
const STAYING: readonly Market[] = Array.from({ length: 14 }, (_, index) => ({
  market: named('STAY', index),
  timeoutSeconds: [10, 10, 12, 15, 20, 30, 60][index % 7] ?? 10,
}));

/** The markets of the good file of a round: three of them change their timeout, up to three come and go. */
function marketsOf(round: number): Market[] {
  const changing = [0, 1, 2].map((index) => ({
    market: named('TURN', index),
    timeoutSeconds: (round + index) % 2 === 0 ? 10 : 45,
  }));
  const passing = [0, 1, 2]
    .filter((index) => (round >> index) % 2 === 1)
    .map((index) => ({ market: named('PASS', index), timeoutSeconds: 10 }));
  const all = [...STAYING, ...changing, ...passing];
  // The order of the markets means nothing.
  return [...all.slice(round % all.length), ...all.slice(0, round % all.length)];
}

const namesOf = (markets: readonly Market[]) => markets.map(({ market }) => market).toSorted();

type Content = Readonly<Record<string, unknown>>;

/** Files that must be refused, and what of the answer names the place. */
const BAD: readonly (readonly [(good: Content) => string, RegExp])[] = [
  [
    (good) => JSON.stringify({ ...good, markets: [...STAYING, { market: 'LATE_USDT', timeoutSeconds: 4 }] }),
    /killswitchd\.json:1:\d+ markets\[14\]\.timeoutSeconds: found 4; allowed: /,
  ],
  [(good) => JSON.stringify(good).slice(0, -20), /killswitchd\.json:1:\d+: not valid YAML/],
  [
    (good) => JSON.stringify({ ...good, market: [] }),
    /killswitchd\.json:1:\d+ market: unknown key; .*markets\?/,
  ],
  [
    (good) => JSON.stringify({ ...good, liveness: { mode: 'none' } }),
    /liveness\.mode: runs with beat, found none; restart to change it/,
  ],
];

/** On SIGUSR2 what is garbage is collected: how much of it waits for a collection says nothing about what is held. */
const COLLECTING = `data:text/javascript,${encodeURIComponent("process.on('SIGUSR2', () => globalThis.gc());")}`;

/** A daemon that beats, scrapes and requests keep busy until `rest` is called. */
async function play(context: TestContext) {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: marketsOf(0),
    control: true,
    config: { liveness: { mode: 'beat', ttlSeconds: 15 } },
    // Else V8 makes room for the young by how busy the process is, and hides with it what grows for other reasons.
    env: { NODE_OPTIONS: `--max-semi-space-size=8 --expose-gc --import=${COLLECTING}` },
  });
  await daemon.ready();
  const ask = asker(context, daemon.socket, 4);
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;
  return { exchange, daemon, ask, content, rest: keepBusy(context, daemon, ask) };
}

/** Five beats a second, and two each of scrapes, status requests and looks at the page. */
function keepBusy({ onTestFinished }: TestContext, daemon: DaemonProcess, ask: Ask) {
  let over = false;
  const statuses: number[] = [];
  const repeat = async (everyMs: number, request: () => Promise<{ readonly status: number }>) => {
    while (!over) {
      const { status } = await request().catch(() => ({ status: 0 }));
      statuses.push(status);
      await sleep(everyMs);
    }
  };
  const loops = [
    repeat(200, () => ask('/v1/beat')),
    repeat(500, () => ask('/v1/status', { method: 'GET' })),
    ...['/metrics', '/api/v1/status', '/'].map((path) => repeat(500, () => daemon.get(path))),
  ];
  const rest = async (): Promise<readonly number[]> => {
    over = true;
    await Promise.all(loops);
    return statuses;
  };
  onTestFinished(() => void rest());
  return rest;
}

interface Held {
  readonly descriptors: number;
  readonly timers: number;
  readonly megabytes: number;
}

/** What the process holds; the page may be a second old. */
async function heldBy(daemon: DaemonProcess): Promise<Held> {
  process.kill(daemon.pid, 'SIGUSR2');
  await sleep(1100);
  return {
    descriptors: process.platform === 'linux' ? readdirSync(`/proc/${daemon.pid}/fd`).length : 0,
    timers: await daemon.metric('nodejs_active_resources', { type: 'Timeout' }),
    megabytes: (await daemon.metric('process_resident_memory_bytes')) / 2 ** 20,
  };
}

test('many reloads under load, good and bad in turns, lose no timer, no handle and no memory', {
  timeout: 120_000,
}, async (context) => {
  const { exchange, daemon, ask, content, rest } = await play(context);
  const fromMs = await exchange.nowMs();
  let good: Content = content;
  let first: Held | null = null;
  for (let round = 0; round < RELOADS; round += 1) {
    const startedMs = performance.now();
    const byCommand = (round >> 1) % 2 === 0;
    if (round % 2 === 0) {
      good = { ...content, markets: marketsOf(round / 2 + 1) };
      writeConfig(daemon, JSON.stringify(good));
      if (byCommand) {
        const reply = await ask('/v1/reload');
        expect([reply.status, reply.body]).toMatchObject([200, { result: 'applied', done: true }]);
      } else {
        await reloadBySignal(daemon, 'reload-applied');
      }
    } else {
      const [spoil, names] = BAD[(round >> 1) % BAD.length] ?? [String, /./];
      writeConfig(daemon, spoil(good));
      if (byCommand) {
        const reply = await ask('/v1/reload');
        expect([reply.status, reply.code]).toEqual([422, 'config_rejected']);
        expect((reply.body as { error: { problems: string[] } }).error.problems.join('\n')).toMatch(names);
      } else {
        expect(JSON.parse(`{${await reloadBySignal(daemon, 'reload-rejected')}`).msg).toMatch(names);
      }
      const beat = (await ask('/v1/beat')).body as { markets: object };
      expect(Object.keys(beat.markets).toSorted()).toEqual(namesOf(good['markets'] as Market[]));
    }
    if (round === WARM_UP) first = await heldBy(daemon);
    await sleep(Math.max(0, EVERY_MS - (performance.now() - startedMs)));
  }
  const last = await heldBy(daemon);
  console.log(
    `held after ${WARM_UP} reloads: ${JSON.stringify(first)}; after ${RELOADS}: ${JSON.stringify(last)}`,
  );
  const before = first ?? last;
  expect(last.descriptors).toBeLessThanOrEqual(before.descriptors + 6);
  expect(last.timers).toBeLessThanOrEqual(before.timers + 6);
  expect(last.megabytes).toBeLessThanOrEqual(before.megabytes * 1.25 + 20);

  expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(0);
  expect(await daemon.metric('killswitch_config_reloads_total')).toBe(RELOADS);
  expect(await daemon.metric('killswitch_config_reload_failures_total')).toBe(RELOADS / 2);
  writeConfig(daemon, JSON.stringify({ ...content, markets: STAYING }));
  await reloadBySignal(daemon, 'reload-applied');
  await eventually('the other markets gone', 10_000, async () => {
    const { body } = await daemon.get('/metrics');
    const shown = new Set([...body.matchAll(/market="([^"]+)"/g)].map(([, market = '']) => market));
    return String([...shown].toSorted()) === String(namesOf(STAYING)) ? true : null;
  });
  expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(1);
  expect((await rest()).filter((status) => status !== 200)).toEqual([]);

  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  expect(toMs - fromMs).toBeGreaterThan(RELOADS * EVERY_MS * 0.9);
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
    const deleted = ofKind(events, 'timer-deleted', named('PASS', index)).length;
    expect(deleted).toBeGreaterThanOrEqual(Math.floor(RELOADS / 2 / 8));
    expect(ofKind(events, 'timer-deleted', named('TURN', index)).length).toBe(1);
  }
  expect(daemon.stderr()).toBe('');
});
