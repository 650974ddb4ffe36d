import type { BotSnapshot } from '../core/snapshot.ts';
import type { Declarer } from './series.ts';
import type { ShardKind } from './shard.ts';

export const BOT_STATES = [
  'starting',
  'alive',
  'stale',
  'goodbye',
  'failed',
] as const satisfies readonly BotSnapshot['state'][];

/** A bot as a snapshot shows it, and when that was. */
export interface SeenBot extends BotSnapshot {
  /** Unix milliseconds. */
  readonly seenWallMs: number;
}

/** Every metric with a label `bot`; a bot is known by its name. */
export const BOT_SHARDS = {
  own: 'bot',
  nameOf: (bot: string) => bot,
  declare: declareBotMetrics,
} satisfies ShardKind<string, SeenBot, 'bot', BotCounters>;

export type BotCounters = ReturnType<typeof declareBotMetrics>;

function declareBotMetrics(declarer: Declarer<string, SeenBot, 'bot'>) {
  declarer.stateset(
    'killswitch_bot_info',
    'Always 1; how the bot proves that it lives; mode none: not at all.',
    'mode',
    [],
    ({ mode }) => mode,
  );
  declarer.stateset(
    'killswitch_bot_state',
    '1 for the state the bot is in, 0 for every other state.',
    'state',
    BOT_STATES,
    ({ state }) => state,
  );
  declarer.gauge(
    'killswitch_bot_alive',
    '1 while the bot gives evidence that it lives.',
    () => 0,
    ({ state }) => (state === 'alive' ? 1 : 0),
  );
  declarer.gauge(
    'killswitch_bot_last_evidence_timestamp_seconds',
    'Unix time of the last evidence that the bot lives; 0 where there was none.',
    () => 0,
    ({ evidenceAgeMs, seenWallMs }) => (evidenceAgeMs === null ? 0 : (seenWallMs - evidenceAgeMs) / 1000),
  );
  declarer.gauge(
    'killswitch_bot_evidence_ttl_seconds',
    'How long one sign of life of the bot counts; 0 where nobody watches it.',
    () => 0,
    ({ ttlMs }) => (ttlMs ?? 0) / 1000,
  );
  return {
    changes: declarer.counter(
      'killswitch_bot_changes_total',
      'Times that the bot came into the state.',
      'state',
      BOT_STATES,
    ),
    beats: declarer.counter('killswitch_bot_beats_total', 'Beats of the bot that counted.'),
    beatsRefused: declarer.counter(
      'killswitch_bot_beats_refused_total',
      'Beats of the bot that did not count: copies of older ones, or of a mode that listens to no beats.',
    ),
  };
}
