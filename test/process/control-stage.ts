import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import { type Ask, type Asked, asker, controlsOf } from './control.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Stage, stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { DEMO, type Events, longestGapMs, type RunningExchange } from './simulated-exchange.ts';

export const TOKEN = 'T7-the.token_of+this/test=9876543210';
export const SECRET = 'S5-the.secret_of+this/test=0123456789';
export const WRONG_TOKEN = 'W1-a.wrong_token_of+this/test=5555';
export const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
const T_SECONDS = 10;
/** At the usual cadence it is 0.9: this is a renewal that came 3 s late. */
const LEAST_SLACK = 0.6;
const LONGEST_GAP_MS = T_SECONDS * 1000 * (1 - LEAST_SLACK);

/** A daemon whose bot beats, with both kinds of control listener. */
export interface Play {
  readonly stage: Stage;
  readonly exchange: RunningExchange;
  readonly daemon: DaemonProcess;
  readonly unix: string;
  readonly tcp: string;
  readonly authorised: Asked['headers'];
}

export async function play(context: TestContext): Promise<Play> {
  const stage = stageFor(context);
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
  await daemon.ready();
  expect((await asker(context, unix)('/v1/beat')).status).toBe(200);
  await context.expect
    .poll(async () => (await statusOf(daemon)).bots.map(({ state }) => state), { timeout: 5000 })
    .toEqual(['alive']);
  return { stage, exchange, daemon, unix, tcp, authorised: { authorization: `Bearer ${TOKEN}` } };
}

interface Status {
  readonly phase: string;
  readonly shutdownPolicy: string;
  readonly bots: readonly { readonly bot: string; readonly state: string }[];
  readonly markets: readonly {
    readonly market: string;
    readonly state: string;
    readonly failures: number;
    readonly lapses: number;
    readonly slackHistory: readonly number[];
  }[];
}

async function statusOf(daemon: DaemonProcess): Promise<Status> {
  return JSON.parse((await daemon.get('/api/v1/status')).body) as Status;
}

/** What of a market moves by itself, with each renewal. */
const MOVING = new Set(
  'guaranteedSeconds expiresAt firesBy serverCancellationTime lastAnswerSeconds lastSlackRatio slackHistory renewals promise survivesSeconds'.split(
    ' ',
  ),
);

/** All that a command could have changed: the status but for what moves by itself, configuration and log level. */
export async function settingsOf({ daemon }: Play, ask: Ask): Promise<unknown> {
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

interface Slack {
  /** Cumulated renewals by the upper end of their bucket, as the histogram has them. */
  readonly buckets: ReadonlyMap<string, number>;
  /** Of the last 60 renewals of each market. */
  readonly least: number;
}

export async function slackOf(daemon: DaemonProcess): Promise<Slack> {
  await sleep(1100);
  const { body } = await daemon.get('/metrics');
  const buckets = body.matchAll(/^killswitch_renewal_slack_ratio_bucket\{le="([^"]+)"\} (\d+)$/gm);
  const { markets } = await statusOf(daemon);
  return {
    buckets: new Map([...buckets].map(([, end = '', count]) => [end, Number(count)])),
    least: Math.min(...markets.flatMap(({ slackHistory }) => slackHistory)),
  };
}

/** Shows the histogram, and fails where a renewal came late. */
export function judgeSlack(when: string, { buckets, least }: Slack): void {
  let below = 0;
  const counts = [...buckets].flatMap(([end, count]) => {
    const here = count - below;
    below = count;
    return here === 0 ? [] : [end === '+Inf' ? `${here} above` : `${here} up to ${end}`];
  });
  console.log(`slack ratio of the renewals ${when}: ${counts.join(', ')}; the least is ${least}`);
  expect(below).toBeGreaterThan(MARKETS.length);
  expect(buckets.get(String(LEAST_SLACK))).toBe(0);
  expect(least).toBeGreaterThan(LEAST_SLACK);
}

/** Everything since `fromMs` that is not a renewal of a timer that stands. */
function otherThanRenewals(events: Events, fromMs: number): Events {
  return events.filter(({ kind, atMs }) => atMs >= fromMs && kind !== 'timer-updated');
}

export async function expectNoGap({ exchange }: Play, fromMs: number): Promise<void> {
  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  expect(otherThanRenewals(events, fromMs)).toEqual([]);
  for (const market of MARKETS) {
    expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThanOrEqual(LONGEST_GAP_MS);
  }
}

/** How often each code was counted. The page may be a second old. */
export async function refusalsCounted(daemon: DaemonProcess): Promise<Record<string, number>> {
  await sleep(1100);
  const { body } = await daemon.get('/metrics');
  const counted = body.matchAll(/^killswitch_control_refused_total\{reason="([^"]+)"\} (\d+)$/gm);
  return Object.fromEntries(
    [...counted]
      .filter(([, , count]) => count !== '0')
      .map(([, reason = '', count]) => [reason, Number(count)]),
  );
}

export function tally(codes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** The secret in the forms that a careless program would show it in. */
const formsOf = (text: string) => [
  text,
  encodeURIComponent(text),
  Buffer.from(text).toString('base64'),
  Buffer.from(text).toString('hex'),
];

export async function secretsShownBy(daemon: DaemonProcess, replies: readonly string[]): Promise<string[]> {
  const paths = ['/metrics', '/api/v1/status', '/', '/readyz?verbose'];
  const pages = await Promise.all(paths.map(async (path) => (await daemon.get(path)).body));
  const shown = [daemon.stdout(), daemon.stderr(), ...replies, ...pages];
  return [TOKEN, SECRET, WRONG_TOKEN]
    .flatMap(formsOf)
    .filter((form) => shown.some((text) => text.includes(form)));
}
