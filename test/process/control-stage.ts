import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { asker, controlsOf } from './control.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Scope, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { everythingSaidBy, shownIn } from './secrets.ts';
import { DEMO, longestGapMs } from './simulated-exchange.ts';

export const TOKEN = 'T7-the.token_of+this/test=9876543210';
export const SECRET = 'S5-the.secret_of+this/test=0123456789';
export const WRONG_TOKEN = 'W1-a.wrong_token_of+this/test=5555';
export const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
const T_SECONDS = 10;
/** At the usual cadence it is 0.9: this is a renewal that came 3 s late. */
const LEAST_SLACK = 0.6;
const LONGEST_GAP_MS = T_SECONDS * 1000 * (1 - LEAST_SLACK);

export type Play = Awaited<ReturnType<typeof play>>;

/** A daemon whose bot has beaten, with both kinds of control listener. */
export async function play(scope: Scope) {
  const stage = stageFor(scope);
  const exchange = await stage.exchangeProcess(undefined, {
    env: { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: SECRET },
  });
  const tokenFile = join(stage.directory, 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: T_SECONDS })),
    secret: SECRET,
    config: {
      // One beat lasts for the whole test: no test of the listener is about a bot that falls silent.
      liveness: { mode: 'beat', ttlSeconds: 300 },
      control: { listen: [`unix:${join(stage.directory, 'control.sock')}`, '127.0.0.1:0'], tokenFile },
      log: { level: 'debug' },
    },
  });
  const [unix = '', tcp = ''] = await controlsOf(daemon, 2);
  const ask = asker(scope, unix);
  await daemon.ready();
  expect((await ask('/v1/beat')).status).toBe(200);
  await eventually('the bot alive', 5000, async () =>
    (await statusOf(daemon)).bots[0]?.state === 'alive' ? true : null,
  );
  return { stage, exchange, daemon, unix, tcp, ask, authorised: { authorization: `Bearer ${TOKEN}` } };
}

interface Status {
  readonly phase: string;
  readonly shutdownPolicy: string;
  readonly bots: readonly { readonly bot: string; readonly state: string }[];
  readonly markets: readonly (Readonly<Record<string, unknown>> & {
    readonly slackHistory: readonly number[];
  })[];
}

const statusOf = async (daemon: DaemonProcess) =>
  JSON.parse((await daemon.get('/api/v1/status')).body) as Status;

/** What of a market moves by itself, with each renewal. */
const MOVING = new Set(
  'guaranteedSeconds expiresAt firesBy serverCancellationTime lastAnswerSeconds lastSlackRatio slackHistory renewals promise survivesSeconds'.split(
    ' ',
  ),
);

/** All that a command could have changed: the status but for what moves by itself, configuration and log level. */
async function settingsOf({ daemon, ask }: Play): Promise<Readonly<Record<string, unknown>>> {
  const { phase, shutdownPolicy, bots, markets } = await statusOf(daemon);
  return {
    phase,
    shutdownPolicy,
    bots: bots.map(({ bot, state }) => [bot, state]),
    markets: markets.map((market) =>
      Object.fromEntries(Object.entries(market).filter(([key]) => !MOVING.has(key))),
    ),
    level: (await ask('/v1/log-level', { body: {} })).body,
    config: await daemon.metric('killswitch_config_hash'),
    reloads: await daemon.metric('killswitch_config_reloads_total'),
  };
}

/** Returns what shows that since then nothing was changed but what `may` change, and that every renewal came in time. */
export async function nothingHappens(stand: Play, ...may: readonly string[]): Promise<() => Promise<void>> {
  const { exchange } = stand;
  const settled = async () =>
    Object.fromEntries(Object.entries(await settingsOf(stand)).filter(([key]) => !may.includes(key)));
  const before = await settled();
  const fromMs = await exchange.nowMs();
  return async () => {
    await sleep(1100);
    expect(await settled()).toEqual(before);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    expect(events.filter(({ kind, atMs }) => atMs >= fromMs && kind !== 'timer-updated')).toEqual([]);
    for (const market of MARKETS)
      expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThanOrEqual(LONGEST_GAP_MS);
  };
}

/** Shows the slack of the renewals so far, and fails where one came late. */
export async function judgeSlack(when: string, daemon: DaemonProcess): Promise<void> {
  await sleep(1100);
  const { body } = await daemon.get('/metrics');
  const lines = body.matchAll(/^killswitch_renewal_slack_ratio_bucket\{le="([^"]+)"\} (\d+)$/gm);
  const buckets = new Map([...lines].map(([, end = '', count]) => [end, Number(count)]));
  const { markets } = await statusOf(daemon);
  const least = Math.min(...markets.flatMap(({ slackHistory }) => slackHistory));
  console.log(`renewals ${when}, by slack ratio: ${JSON.stringify([...buckets])}; the least is ${least}`);
  expect(buckets.get('+Inf')).toBeGreaterThan(MARKETS.length);
  expect(buckets.get(String(LEAST_SLACK))).toBe(0);
  expect(least).toBeGreaterThan(LEAST_SLACK);
}

/** How often each code was counted. The page may be a second old. */
export async function refusalsCounted(daemon: DaemonProcess): Promise<Record<string, number>> {
  await sleep(1100);
  const { body } = await daemon.get('/metrics');
  const counted = body.matchAll(/^killswitch_control_refused_total\{reason="([^"]+)"\} ([1-9]\d*)$/gm);
  return Object.fromEntries([...counted].map(([, reason = '', count]) => [reason, Number(count)]));
}

/** How often each code is among these. */
export function tally(codes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** How often each code was counted more than before. */
export function since(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  const more = Object.entries(after).map(([code, count]): [string, number] => [
    code,
    count - (before[code] ?? 0),
  ]);
  return Object.fromEntries(more.filter(([, count]) => count > 0));
}

export async function secretsShownBy(daemon: DaemonProcess, replies: readonly string[]): Promise<string[]> {
  return shownIn([await everythingSaidBy(daemon), ...replies].join('\n'), [TOKEN, SECRET, WRONG_TOKEN]);
}
