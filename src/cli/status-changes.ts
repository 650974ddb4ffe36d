import { WORDS } from '../operator/page-words.ts';
import type { SeenMarket, SeenStatus } from './status-document.ts';
import { nameMarkets } from './status-table.ts';

/** More markets than this that change alike in one look are told in one line. */
const TOLD_ONE_BY_ONE = 20;

/** What is different between two looks at a daemon, a sentence each; what there is, at the first look. */
export function describeChanges(before: SeenStatus | null, after: SeenStatus): string[] {
  if (before === null) {
    const states = groupBy(after.markets, ({ state }) => state);
    const counts = [...states].map(([state, { length }]) => `${WORDS.count(length)} ${state}`);
    return [
      `${describeReadiness(after)} ${WORDS.count(after.markets.length, 'market')}: ${counts.join(', ')}.`,
    ];
  }
  const changes: string[] = [];
  if (before.startedAt !== after.startedAt) changes.push('The daemon was started anew.');
  if (before.phase !== after.phase) changes.push(`The daemon is ${after.phase}.`);
  if (before.ready !== after.ready || before.nothingGuarded !== after.nothingGuarded)
    changes.push(describeReadiness(after));
  changes.push(
    ...describeMarkets(before, after),
    ...describeBots(before, after),
    ...describeBases(before, after),
  );
  return changes;
}

function describeReadiness({ ready, notReady, nothingGuarded }: SeenStatus): string {
  if (ready) return nothingGuarded === null ? 'Ready.' : `Ready, but ${nothingGuarded}.`;
  const [first = 'it does not say why', ...others] = notReady;
  return `Not ready: ${first}${others.length === 0 ? '' : `, and ${WORDS.count(others.length, 'more reason')}`}.`;
}

function describeMarkets(before: SeenStatus, after: SeenStatus): string[] {
  const known = new Map(before.markets.map((market) => [market.market, market]));
  const there = new Set(after.markets.map(({ market }) => market));
  const pairs = after.markets.map((now) => ({ now, earlier: known.get(now.market) }));
  const moved = pairs.filter(({ now, earlier }) => earlier !== undefined && earlier.state !== now.state);
  const added = pairs.filter(({ earlier }) => earlier === undefined).map(({ now }) => now.market);
  const removed = before.markets.map(({ market }) => market).filter((market) => !there.has(market));
  return [
    ...(added.length === 0 ? [] : [`Added: ${nameMarkets(added)}.`]),
    ...(removed.length === 0 ? [] : [`Removed: ${nameMarkets(removed)}.`]),
    ...[...groupBy(moved, ({ now, earlier }) => `${earlier?.state} -> ${now.state}`)].flatMap(
      ([move, markets]) =>
        markets.length > TOLD_ONE_BY_ONE
          ? [`${nameMarkets(markets.map(({ now }) => now.market))}: ${move}`]
          : markets.map(({ now }) => `${now.market}: ${move}${problemOf(now)}`),
    ),
    ...pairs
      .filter(({ now, earlier }) => now.lapses > (earlier?.lapses ?? now.lapses))
      .map(({ now }) => `${now.market}: lapsed, ${WORDS.count(now.lapses, 'lapse')} in all`),
  ];
}

function problemOf({ lastProblem }: SeenMarket): string {
  return lastProblem === null ? '' : `: ${lastProblem}`;
}

function describeBots(before: SeenStatus, after: SeenStatus): string[] {
  return [...after.bots.values()].flatMap(({ bot, state }) => {
    const earlier = before.bots.get(bot)?.state;
    return earlier === undefined || earlier === state ? [] : [`Bot ${bot}: ${earlier} -> ${state}`];
  });
}

function describeBases(before: SeenStatus, after: SeenStatus): string[] {
  const stateOf = ({ up, outage }: SeenStatus['bases'][number]) =>
    outage ? 'outage' : up === null ? 'no ping yet' : up ? 'up' : 'answers no ping';
  const known = new Map(before.bases.map((base) => [base.url, stateOf(base)]));
  return after.bases.flatMap((base) => {
    const [earlier, now] = [known.get(base.url), stateOf(base)];
    if (earlier === undefined || earlier === now) return [];
    return [
      `Exchange ${base.url}: ${earlier} -> ${now}${base.lastProblem === null ? '' : `: ${base.lastProblem}`}`,
    ];
  });
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
