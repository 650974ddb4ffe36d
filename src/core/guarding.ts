import type { Hold } from './notice.ts';
import type { BotSnapshot, MarketSnapshot, Snapshot } from './snapshot.ts';

/** Of one market, and of several. */
type Predicate = readonly [one: string, several: string];

const HELD: Readonly<Record<Hold, Predicate>> = {
  disarmed: ['is disarmed', 'are disarmed'],
  paused: ['is paused', 'are paused'],
  tripped: ['is tripped', 'are tripped'],
  lapsed: ['is held after a lapse', 'are held after a lapse'],
};

const ABSENT: Readonly<Record<BotSnapshot['state'], Predicate>> = {
  starting: ['waits for its bot', 'wait for their bots'],
  alive: ['is left alone', 'are left alone'],
  stale: ['has a bot that gives no sign of life', 'have bots that give no sign of life'],
  goodbye: ['has a bot that said goodbye', 'have bots that said goodbye'],
  failed: ['has a bot that failed', 'have bots that failed'],
};

/**
 * Why no market at all is wanted armed now: `nothing is guarded: all 2 markets are disarmed`; null where one is, or the
 * daemon does not run. A daemon that has nothing to arm is ready all the same: whoever restarts what is not ready would
 * undo the operator's word, since a daemon that starts arms everything.
 */
export function describeNothingGuarded({
  phase,
  markets,
  bots,
}: Pick<Snapshot, 'phase' | 'markets' | 'bots'>): string | null {
  if (phase !== 'running' || markets.some(({ wanted }) => wanted)) return null;
  const configured = markets.filter(({ leaving }) => !leaving);
  if (configured.length === 0) return 'nothing is guarded: no market is configured';
  const botStates = new Map(bots.map(({ bot, state }) => [bot, state]));
  const why = ({ hold, bot }: MarketSnapshot): Predicate =>
    hold === null ? ABSENT[botStates.get(bot) ?? 'alive'] : HELD[hold.why];
  const groups = [...Map.groupBy(configured, why)].map(([[one, several], { length }], _, all) => {
    if (all.length > 1) return `${length} ${length === 1 ? one : several}`;
    return length === 1 ? `${configured[0]?.market} ${one}` : `all ${length} markets ${several}`;
  });
  return `nothing is guarded: ${groups.length > 1 ? `of ${configured.length} markets ` : ''}${groups.join(', ')}`;
}
