import { readFileSync } from 'node:fs';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import type { Fault } from '../../src/simulator/faults.ts';
import type { ApiKey } from '../../src/simulator/state.ts';
import { control } from '../simulator/raw-client.ts';
import { eventually, type Program, said } from './program.ts';

export const DEMO = { key: 'demo-key', secret: 'demo-secret' } as const;

export type Events = readonly ExchangeEvent[];
export type EventKind = ExchangeEvent['kind'];
/** The events that can be of kind `K`; some kinds share a shape, which `Extract` would miss. */
type Holding<E, K> = E extends { readonly kind: infer Own } ? (K extends Own ? E : never) : never;
export type EventOf<K extends EventKind> = Holding<ExchangeEvent, K>;

/** What an exchange wrote into the file of `--event-log`, whose last line may not be whole yet. */
export function eventsIn(file: string): ExchangeEvent[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as ExchangeEvent);
}

/** A simulated exchange that runs. */
export type RunningExchange = ReturnType<typeof exchangeAt>;

export interface RestingOrder {
  readonly market: string;
  readonly type: 'spot' | 'margin' | 'futures';
}

/** Reads the address off the first line of an exchange that was just started. */
export async function connectTo(program: Program) {
  const url = await eventually('the address of the exchange', 15_000, () => {
    if (program.hasExited()) throw new Error(`the exchange ended:\n${said(program)}`);
    const [line, rest] = program.stdout().split('\n', 2);
    return line === undefined || rest === undefined ? null : line;
  });
  const end = () => {
    program.signal('SIGKILL');
    return program.exit();
  };
  return exchangeAt(url, end);
}

/** The control endpoints of an exchange; `end` kills it. */
export function exchangeAt(url: string, end: () => Promise<unknown>) {
  const ask = async (method: string, path: string, asked?: unknown): Promise<unknown> => {
    const { status, value } = await control(url, method, `/simulator/${path}`, asked);
    if (status >= 300) throw new Error(`${method} ${path}: HTTP ${status}: ${JSON.stringify(value)}`);
    return value;
  };
  let known: Events = [];
  /** What is known already is not asked for again; `waitMs`: waits so long for something new. */
  const events = async (waitMs = 0): Promise<Events> => {
    const seq = known.at(-1)?.seq ?? 0;
    const later = (await ask('GET', `events?since=${seq}&wait=${waitMs}`)) as Events;
    const last = known.at(-1)?.seq ?? 0;
    known = [...known, ...later.filter((event) => event.seq > last)];
    return known;
  };
  return {
    url,
    /** Kills it: its connections break, and nobody listens any more. */
    end,
    /** Everything that happened so far, oldest first. */
    events: () => events(),
    /** The exchange's clock, Unix milliseconds. */
    nowMs: async () => ((await ask('GET', 'state')) as { nowMs: number }).nowMs,
    placeOrders(...orders: readonly RestingOrder[]) {
      const sales = orders.map((order) => ({ ...order, side: 'sell' }));
      return ask('POST', 'orders', sales);
    },
    addKeys: (...keys: readonly (Omit<ApiKey, 'account'> & Partial<ApiKey>)[]) => ask('POST', 'keys', keys),
    addFaults: (...faults: readonly Fault[]) => ask('POST', 'faults', faults),
    clearFaults: () => ask('DELETE', 'faults'),
    /** Resolves with the first event that fits; rejects after `withinMs`. */
    event: <K extends EventKind>(
      kind: K,
      withinMs: number,
      fits: (event: EventOf<K>) => boolean = () => true,
    ) => eventually(`event ${kind}`, withinMs, async () => ofKind(await events(200), kind).find(fits)),
  };
}

/** The events of one kind, of one market where it is given. */
export function ofKind<K extends EventKind>(events: Events, kind: K, market?: string): EventOf<K>[] {
  return events.filter(
    (event): event is EventOf<K> =>
      event.kind === kind && (market === undefined || ('market' in event && event.market === market)),
  );
}

/** The markets whose timers were deleted, in alphabetical order; twice where it was twice. */
export const deletedIn = async (exchange: RunningExchange): Promise<string[]> =>
  ofKind(await exchange.events(), 'timer-deleted')
    .map(({ market }) => market)
    .sort();

/** When the exchange armed or renewed the timer of a market, Unix milliseconds. */
export function renewalsOf(events: Events, market: string): number[] {
  return events.flatMap((event) =>
    (event.kind === 'timer-armed' || event.kind === 'timer-updated') && event.market === market
      ? [event.atMs]
      : [],
  );
}

/** When each market was renewed first after a moment, Unix milliseconds. */
export function firstRenewalsAfter(
  exchange: RunningExchange,
  markets: readonly string[],
  momentMs: number,
): Promise<number[]> {
  return eventually(`each of ${markets.join()} renewed`, 20_000, async () => {
    const events = await exchange.events();
    const first = markets.map((market) => renewalsOf(events, market).find((atMs) => atMs >= momentMs) ?? 0);
    return first.includes(0) ? null : first;
  });
}

/** The longest time between two renewals of a market that lies, in part, between two moments; the last may be open. */
export function longestGapMs(events: Events, market: string, fromMs: number, toMs: number): number {
  const moments = [...renewalsOf(events, market).filter((atMs) => atMs < toMs), toMs];
  let longest = 0;
  for (const [index, atMs] of moments.entries()) {
    const before = moments[index - 1];
    if (before !== undefined && atMs > fromMs) longest = Math.max(longest, atMs - before);
  }
  return moments.length === 1 ? Number.POSITIVE_INFINITY : longest;
}

/** The longest time that any of the markets went without a renewal, as far as it lies in the time of `during`. */
export async function longestGapDuring(
  exchange: RunningExchange,
  markets: readonly string[],
  during: () => Promise<unknown>,
): Promise<number> {
  const fromMs = await exchange.nowMs();
  await during();
  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  return Math.max(...markets.map((market) => longestGapMs(events, market, fromMs, toMs)));
}

/** Whether a timer was made or lengthened after it had been deleted. */
export function renewedAfterDelete(events: Events, market: string): boolean {
  const deleted = ofKind(events, 'timer-deleted', market)[0];
  return deleted !== undefined && renewalsOf(events, market).some((atMs) => atMs > deleted.atMs);
}
