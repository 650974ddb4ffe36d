import { hashText } from '../util/hash.ts';
import type { MarketConfig } from './config.ts';
import { Type } from './json-schema.ts';
import { describe } from './wording.ts';

/** More daemons than this share no list of markets. */
const MOST_SHARDS = 1000;

/** One list of markets, shared out among several daemons. */
export const ShardSchema = Type.Object(
  {
    index: Type.Optional(
      Type.Integer({
        description:
          'Which shard this daemon is, counted from 0. One that is not below the count guards nothing and waits for a larger count.',
        default: 0,
        minimum: 0,
        maximum: MOST_SHARDS - 1,
        examples: [2],
      }),
    ),
    count: Type.Optional(
      Type.Integer({
        description:
          'How many daemons share the markets of this configuration. Each market belongs to one of them; a change of the count moves only the markets that it must.',
        default: 1,
        minimum: 1,
        maximum: MOST_SHARDS,
        examples: [4],
      }),
    ),
    handoverSeconds: Type.Optional(
      Type.Number({
        description:
          'How long a market that goes to another shard is still renewed here as well: longer than the other daemons take to learn of the new count.',
        default: 120,
        minimum: 0,
        maximum: 3600,
        examples: [300],
      }),
    ),
    budget: Type.Optional(
      Type.Enum(['shared', 'own'], {
        description:
          'shared: the shards divide exchange.budgetShare among them. own: each has an address of its own, and the whole of it. Each has a key of its own either way.',
        default: 'shared',
        examples: ['own'],
      }),
    ),
  },
  {
    additionalProperties: false,
    description: 'This daemon as one of several that share the markets.',
  },
);

/** Which part of the markets a daemon guards. */
export interface Shard {
  readonly index: number;
  readonly count: number;
}

/** `2` and `killswitchd-2`, the name of a StatefulSet's pod, both as 2. */
export function readOrdinal(text: unknown): unknown {
  return Number(ORDINAL.exec(String(text))?.[1]);
}

/** `2/4`, or `killswitchd-2/4`, as the file would have it. */
export function readShard(text: unknown): unknown {
  const [, index, count] = SHARD.exec(String(text)) ?? [];
  return { index: readOrdinal(index), count: Number(count) };
}

/** A name before the dash: -1 is a mistake and no pod. */
const ORDINAL = /^(?:[^-].*-)?(\d{1,3})$/;
const SHARD = /^((?:[^/-][^/]*-)?\d{1,3})\/(\d{1,4})$/;

/** What is wrong with the number of a shard; null where nothing is. */
export function refuseOrdinal(text: string): string | null {
  if (ORDINAL.test(text)) return null;
  return `found ${describe(text)}; allowed: a whole number from 0 to ${MOST_SHARDS - 1}, or a name that ends in -NUMBER, such as killswitchd-2`;
}

/** What is wrong with a text that should say I/N; null where nothing is. */
export function refuseShard(text: string): string | null {
  const allowed = `found ${describe(text)}; allowed: I/N with I from 0 to N - 1, such as 2/4`;
  const [, index, count] = SHARD.exec(text) ?? [];
  if (count === undefined || Number(count) === 0) return allowed;
  const ordinal = Number(readOrdinal(index));
  if (ordinal < Number(count)) return null;
  return `${allowed}: shards are counted from 0, and the last of ${count} is ${Number(count) - 1}/${count}`;
}

/** The markets of one shard, in the order given. */
export function marketsOf(
  { index, count }: Shard,
  markets: readonly MarketConfig[],
): readonly MarketConfig[] {
  return count === 1 && index === 0
    ? markets
    : markets.filter(({ market }) => ownerOf(market, count) === index);
}

/**
 * The shard that a market belongs to, from 0. Rendezvous hashing: the shard with the highest weight for this market.
 * Growing from N to N + 1 shards moves the markets that the new one gets, 1 in N + 1, and no other; shrinking likewise.
 * Every version must give the same owner, or a rolling update would leave markets without one.
 */
export function ownerOf(market: string, count: number): number {
  const seed = hashText(market);
  let owner = 0;
  let highest = -1;
  for (let index = 0; index < count; index += 1) {
    const weight = mix(seed ^ mix(index + 1));
    if (weight > highest) {
      highest = weight;
      owner = index;
    }
  }
  return owner;
}

/** The finalizer of MurmurHash3: every bit of the input reaches every bit of the output. */
function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
