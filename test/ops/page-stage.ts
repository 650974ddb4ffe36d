import { onTestFinished } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { BaseSnapshot, BotSnapshot, MarketSnapshot, Snapshot } from '../../src/core/view.ts';
import type { Cancellation } from '../../src/operator/cancellations.ts';
import { startWeb, type Web } from '../../src/operator/web.ts';
import type { RecentEvent } from '../../src/ports.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';

/** One market of the play. Its timer runs down in real time and is renewed each period while `renews`. */
interface Part {
  readonly timeoutMs: number;
  readonly periodMs: number;
  renews: boolean;
  /** On the monotonic clock; null where it has no timer. */
  armedAtMs: number | null;
  slackHistory: number[];
  /** What it shows instead of what follows from its timer. */
  shows: Partial<MarketSnapshot>;
}

type Stage = ReturnType<typeof createStage>;

const ROUNDING_MS = 1000;
const clock = createSystemClock();

/** A daemon that is played: the real web listener with states that a test sets, empty at first, until the test is over. */
function createStage() {
  let web: Web | null = null;
  const stage = {
    parts: new Map<string, Part>(),
    bots: [] as (Omit<BotSnapshot, 'evidenceAgeMs' | 'graceEndsWallMs'> & { heardAtMs: number | null })[],
    bases: [
      { url: 'https://exchange.example', up: true, pingMs: 23, lastProblem: null, used: true, outage: false },
    ] as BaseSnapshot[],
    shows: {} as Partial<Snapshot>,
    events: [] as RecentEvent[],
    cancellations: [] as Cancellation[],
    add(market: string, timeoutMs: number, periodMs: number, shows: Partial<MarketSnapshot> = {}): void {
      const armedAtMs = performance.now() - Math.random() * periodMs;
      stage.parts.set(market, { timeoutMs, periodMs, renews: true, armedAtMs, slackHistory: [], shows });
    },
    say(level: RecentEvent['level'], event: string, text: string, agoMs = 0): void {
      stage.events.unshift({ atWallMs: Date.now() - agoMs, level, event, market: null, text });
    },
    /** Serves the page. */
    async open(): Promise<string> {
      web = await startWeb({
        listen: [{ kind: 'tcp', text: '127.0.0.1:0', host: '127.0.0.1', port: 0 }],
        snapshot: () => snapshotOf(stage),
        metrics: { render: async () => Buffer.from('') },
        recentEvents: () => stage.events,
        cancellations: () => stage.cancellations,
        version: '0.1.0',
        clock,
      });
      return web.addresses[0] ?? '';
    },
  };
  const turn = setInterval(() => {
    const nowMs = performance.now();
    for (const part of stage.parts.values()) renew(part, nowMs);
  }, 50);
  onTestFinished(async () => {
    clearInterval(turn);
    await web?.close();
  });
  return stage;
}

function renew(part: Part, nowMs: number): void {
  if (!part.renews || (part.armedAtMs !== null && nowMs - part.armedAtMs < part.periodMs)) return;
  if (part.armedAtMs !== null) {
    const left = part.timeoutMs - ROUNDING_MS - (nowMs - part.armedAtMs);
    part.slackHistory = [...part.slackHistory, Math.max(0, left / part.timeoutMs)].slice(-60);
  }
  part.armedAtMs = nowMs;
}

function snapshotOf(stage: Stage): Snapshot {
  const nowMs = performance.now();
  const markets = [...stage.parts].map(([market, part]) => marketOf(market, part, nowMs));
  return sampleSnapshot({
    markets,
    bases: stage.bases,
    bots: stage.bots.map(({ heardAtMs, ...bot }) => {
      return { ...bot, graceEndsWallMs: null, evidenceAgeMs: heardAtMs === null ? null : nowMs - heardAtMs };
    }),
    ...stage.shows,
  });
}

function marketOf(market: string, part: Part, nowMs: number): MarketSnapshot {
  const { armedAtMs, timeoutMs, periodMs } = part;
  const guaranteedMs = armedAtMs === null ? null : timeoutMs - ROUNDING_MS - (nowMs - armedAtMs);
  const survivesMs = timeoutMs - ROUNDING_MS - periodMs - 450;
  const state = guaranteedMs === null ? 'arming' : guaranteedMs <= 0 ? 'expired' : 'armed';
  const expiryWallMs = guaranteedMs === null ? null : Date.now() + guaranteedMs;
  const firesByWallMs = guaranteedMs === null ? null : Date.now() + guaranteedMs + 2 * ROUNDING_MS;
  return sampleMarket({
    market,
    timeoutMs,
    periodMs,
    survivesMs,
    guaranteedMs,
    state,
    expiryWallMs,
    firesByWallMs,
    slackHistory: part.slackHistory,
    promise: [
      `${market}: renewed every ${periodMs / 1000} s, timer of ${timeoutMs / 1000} s.`,
      `An outage of the exchange shorter than ${survivesMs / 1000} s cancels nothing.`,
      `If the bot dies, its orders are cancelled after at most ${timeoutMs / 1000 + 26} s.`,
    ],
    ...part.shows,
  });
}

/** Two markets that are renewed, one bot that beats, one address. */
export function playWell(): Stage {
  const stage = createStage();
  stage.bots = [{ bot: 'main', mode: 'beat', state: 'alive', ttlMs: 15_000, heardAtMs: performance.now() }];
  stage.add('BTC_USDT', 60_000, 6000);
  stage.add('ETH_USDT', 10_000, 2000);
  return stage;
}

/** Every state that a market, a bot and an address can be in. */
export function playTrouble(): Stage {
  const play = playWell();
  const idle = { wanted: false, firesByWallMs: null, onStop: 'nothing to do: no timer is armed' };
  const retrying = { failureStreak: 7, failures: 1200, lastProblem: 'HTTP 503 with 163 bytes of text/html' };
  const types = ['spot', 'margin', 'futures'] as const;
  play.add('SOL_USDT', 60_000, 6000, { ...retrying, state: 'retrying', types });
  play.add('XRP_USDT', 30_000, 3000, { ...retrying, state: 'expired', guaranteedMs: -4000, lapses: 2 });
  play.add('LTC_USDT', 30_000, 3000, { state: 'rejected', lastProblem: 'code 30: market is not known' });
  play.add('ADA_USDT', 30_000, 3000, { state: 'suspended', wanted: false });
  play.add('DOT_USDT', 30_000, 3000, { state: 'arming', guaranteedMs: null, slackHistory: [] });
  const untilWallMs = Date.now() + 583_000;
  const paused = { guaranteedMs: null, hold: { why: 'paused', untilWallMs } } as const;
  play.add('TRX_USDT', 30_000, 3000, { ...idle, ...paused, state: 'paused' });
  const tripped = { guaranteedMs: null, hold: { why: 'tripped', untilWallMs: null }, leaving: true } as const;
  play.add('BNB_USDT', 30_000, 3000, { ...idle, ...tripped, state: 'disarmed' });
  play.bots = [
    ...play.bots,
    { bot: 'hedger', mode: 'file', state: 'stale', ttlMs: 15_000, heardAtMs: performance.now() - 40_000 },
    { bot: 'third', mode: 'none', state: 'starting', ttlMs: null, heardAtMs: null },
  ];
  const url = 'https://second-address-of-the-exchange.example';
  const down = { url, up: false, pingMs: null, lastProblem: 'connection refused', used: true, outage: true };
  play.bases = [...play.bases, down];
  const lapsed = 'XRP_USDT LAPSED: its timer fired and the exchange cancelled its orders.';
  play.say('error', 'lapsed', lapsed, 90_000_000);
  play.say('warn', 'attempt-failed', 'SOL_USDT: a renewal failed after 1.5 s (timeout: no answer).');
  play.say('info', 'armed', 'BTC_USDT is armed.');
  return play;
}
