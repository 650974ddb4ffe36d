import { hashText } from '../util/text.ts';
import { done, type Flaw, type Profile, readForm, refuse, refuseFields, unless } from './answer.ts';
import { createRandom } from './random.ts';
import type { Call } from './state.ts';

const HOUR_SECONDS = 3600;
const DAY_SECONDS = 86_400;
const UNIT_SECONDS: Readonly<Record<string, number>> = { m: 60, h: HOUR_SECONDS, d: DAY_SECONDS };
/** A series is never longer: it fits in the 1 MiB that a client takes. */
const MAX_POINTS = 18_000;
const LIVE_INTERVALS: readonly string[] = ['5m', '1h', '24h'];
const BLOCK_SECONDS = 7200;
const BLOCKS = 10;
const { MIN_SAFE_INTEGER: MIN, MAX_SAFE_INTEGER: MAX } = Number;

const INCORRECT_TIMESTAMP = refuse(422, 422, 'Incorrect timestamp');

/** `POST /api/v4/mining/hashrate`. Every name is a mining account; what is left out is as at the live exchange. */
export function readHashrate(call: Call) {
  const { nowMs, profile, seed } = call;
  const now = Math.floor(nowMs / 1000);
  const form = readForm(call);
  const account = form.text('account');
  const to = form.integer('to', MIN, MAX, now);
  const from = form.integer('from', MIN, MAX, Math.min(MAX, Math.max(MIN, to - DAY_SECONDS)));
  const interval = form.optionalText('interval', (text) => intervalFlaw(text, profile)) ?? '1h';
  if (form.flaws.length > 0) return refuseFields('form', form.flaws, profile);
  const step = secondsOf(interval);
  const first = Math.ceil(from / step) * step;
  const last = Math.min(to, now);
  const points = Math.floor((last - first) / step) + 1;
  if (from < 0 || from > last || points > MAX_POINTS) return INCORRECT_TIMESTAMP;
  const hashrate = Array.from({ length: points }, (_, index) => {
    const timestamp = first + index * step;
    return { timestamp, hashrate: rateAt(`${seed} ${account}`, timestamp) };
  });
  return done({ data: { account, hashrate } });
}

/** Whole minutes, hours or days, as `1h` is; NaN for anything else. The live exchange knows three. */
function secondsOf(interval: string): number {
  const [, count = '', unit = ''] = /^([1-9]\d{0,3})([mhd])$/.exec(interval) ?? [];
  return Number(count) * (UNIT_SECONDS[unit] ?? Number.NaN);
}

function intervalFlaw(interval: string, profile: Profile): Flaw | null {
  const isLive = profile === 'live';
  const isKnown = isLive ? LIVE_INTERVALS.includes(interval) : Number.isFinite(secondsOf(interval));
  const oneOfThem = `one of ${LIVE_INTERVALS.join(', ')}`;
  const allowed = isLive ? oneOfThem : 'minutes, hours or days, such as 5m, 1h or 1d';
  return unless(isKnown, 'interval', `must be ${allowed}.`);
}

/** `GET /api/v4/public/mining-pool`: a pool that follows from the seed and the time. */
export function readMiningPool({ nowMs, seed }: Call) {
  const now = Math.floor(nowMs / 1000);
  const hour = now - (now % HOUR_SECONDS);
  const today = now - (now % DAY_SECONDS);
  const workers = 1500 + Math.floor(createRandom(hashText(`${seed} workers ${hour}`))() * 500);
  const connection_links = ['stratum+tcp://pool.example:3333', 'stratum+tcp://pool.example:443'];
  const pool = { connection_links, location: 'global', assets: ['BTC'], reward_schemes: ['FPPS'], workers };
  const last7days_hash_rate = Array.from({ length: 7 }, (_, index) => {
    const timestamp = today - (7 - index) * DAY_SECONDS;
    return { timestamp, hashrate: rateAt(`${seed} pool`, timestamp) };
  });
  const blocks = Array.from({ length: BLOCKS }, (_, index) => {
    const height = Math.floor(now / BLOCK_SECONDS) - index;
    return { block_found_at: height * BLOCK_SECONDS, block_height: height };
  });
  const current_hash_rate = rateAt(`${seed} pool`, hour);
  return done({ data: { ...pool, current_hash_rate, last7days_hash_rate, blocks } });
}

/** A rate in H that depends on nothing but the name and the moment, within a tenth around the name's own level. */
function rateAt(name: string, timestamp: number): string {
  const level = 100 + (hashText(name) % 900);
  const tenths = 9000 + Math.floor(createRandom(hashText(`${name} ${timestamp}`))() * 2001);
  return String(level * tenths * 100_000);
}
