import type { Timeline } from '../simulator/virtual-clock.ts';
import type { Fleet } from './fleet.ts';
import type { Judge } from './judge.ts';
import type { Plan } from './plan.ts';

/** The simulated bots: each beats at every daemon, unless it is silent. */
export interface Bots {
  say(bot: number, says: 'beat' | 'goodbye' | 'fail'): void;
  /** No beats before the moment; with `turnMs` the bot beats again in every second stretch of this length. */
  silence(bot: number, untilMs: number, turnMs: number | null): void;
  /** Everybody beats from now on. */
  wake(): void;
}

interface Silence {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly turnMs: number | null;
}

const BEAT_MS = 3_000;

export function createBots(plan: Plan, timeline: Timeline, fleet: Fleet, judge: Judge): Bots {
  const silences: Silence[][] = Array.from({ length: plan.bots }, () => []);

  function isSilent(bot: number): boolean {
    const nowMs = timeline.nowMs();
    return (
      silences[bot]?.some(({ fromMs, untilMs, turnMs }) => {
        if (nowMs >= untilMs) return false;
        return turnMs === null || Math.floor((nowMs - fromMs) / turnMs) % 2 === 0;
      }) ?? false
    );
  }
  function say(bot: number, says: 'beat' | 'goodbye' | 'fail'): void {
    if (!plan.watched) return;
    for (const host of fleet.running.values()) {
      // What reaches a host that stands still is answered late, and a bot does not take that for a beat.
      if (host.clock.isStalled()) continue;
      judge.onEvidence(host, bot, says);
      host.keeper.hear(`bot-${bot}`, says);
    }
  }
  function beat(bot: number): void {
    if (!isSilent(bot)) say(bot, 'beat');
    timeline.at(timeline.nowMs() + BEAT_MS, () => beat(bot));
  }

  for (let bot = 0; bot < plan.bots; bot += 1) timeline.at(500 + 100 * bot, () => beat(bot));
  return {
    say,
    silence: (bot, untilMs, turnMs) => silences[bot]?.push({ fromMs: timeline.nowMs(), untilMs, turnMs }),
    wake() {
      for (const own of silences) own.length = 0;
    },
  };
}
