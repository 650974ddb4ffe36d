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
  stale: ['has a bot that is silent', 'have bots that are silent'],
  goodbye: ['has a bot that said goodbye', 'have bots that said goodbye'],
  failed: ['has a bot that failed', 'have bots that failed'],
};

const DEAD: Partial<Record<BotSnapshot['state'], string>> = { stale: 'is silent', failed: 'has failed' };

/**
 * Why the daemon is not ready, a sentence each. Ready means protected: every configured market of a bot that lives is
 * surely armed, no bot is dead, and something is guarded where anything is configured.
 */
export function describeNotReady({
  phase,
  markets,
  bots,
  nothingGuarded,
}: Pick<Snapshot, 'phase' | 'markets' | 'bots' | 'nothingGuarded'>): string[] {
  if (phase !== 'running') return [`the daemon is ${phase}`];
  const living = new Set(
    bots.filter(({ state }) => state === 'alive' || state === 'starting').map(({ bot }) => bot),
  );
  const dead = bots.flatMap(({ bot, state }) =>
    DEAD[state] === undefined ? [] : [`the bot ${bot} ${DEAD[state]}: its timers are not renewed`],
  );
  const unarmed = markets.flatMap((seen) => {
    if (seen.wanted ? (seen.guaranteedMs ?? 0) > 0 : seen.leaving || !living.has(seen.bot)) return [];
    const { market, hold } = seen;
    return hold === null
      ? `${market} is not confirmed armed (${seen.state})`
      : `${market} ${HELD[hold.why][0]}`;
  });
  const reasons = [...dead, ...unarmed];
  const configured = markets.some(({ leaving }) => !leaving);
  return reasons.length === 0 && nothingGuarded !== null && configured ? [nothingGuarded] : reasons;
}

/**
 * Why no market at all is wanted armed now: `nothing is guarded: all 2 markets are disarmed`; null where one is, or the
 * daemon does not run.
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
