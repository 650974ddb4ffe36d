import { createPlaces } from './places.ts';
import { createDeclarer, type Declarer, type Described, type Series } from './series.ts';

/** The lines of one metric for so many members take a fraction of a millisecond to make. */
export const SHARD_MEMBERS = 50;

/**
 * The metrics of at most `SHARD_MEMBERS` members (markets, or bots). The client library keeps an object for each
 * sample, and makes the text of a metric in one piece: over ten thousand markets that would take hundreds of megabytes,
 * and hold the event loop for a tenth of a second. It serves the metrics of the daemon itself.
 */
export interface Shard<Member, Seen, Counters> {
  readonly counters: Counters;
  readonly size: () => number;
  /** Creates every series of a member with its value before anything has happened, so that no query misses one. */
  add(member: Member): void;
  /** Takes over what is configured for a member that is there; what was counted stays. */
  change(member: Member): void;
  /** Takes every series of a member away: one that was dropped from the configuration must not look armed. */
  remove(name: string): void;
  /** Sets the gauges of every member that `lookup` knows. */
  refresh(lookup: (name: string) => Seen | undefined): void;
  /** The metrics, the same ones in every shard that was declared alike. */
  readonly metrics: readonly (Described & Pick<Series<never, never>, 'samples' | 'version' | 'lines'>)[];
}

/** What sort of members a shard is for. */
export interface ShardKind<Member, Seen, Own extends string, Counters> {
  /** The label that names a member. */
  readonly own: Own;
  readonly nameOf: (member: Member) => string;
  /** Declares every metric. Returns the counters, which are what others may touch. */
  readonly declare: (declarer: Declarer<Member, Seen, Own>) => Counters;
}

/** An empty shard. */
export function createShard<Member, Seen, Own extends string, Counters>({
  own,
  nameOf,
  declare,
}: ShardKind<Member, Seen, Own, Counters>): Shard<Member, Seen, Counters> {
  const places = createPlaces(SHARD_MEMBERS);
  const declarer = createDeclarer<Member, Seen, Own>({ own, places });
  const counters = declare(declarer);
  const { series } = declarer;
  const members = new Map<string, Member>();
  return {
    counters,
    size: places.size,
    add(member) {
      members.set(nameOf(member), member);
      const place = places.take(nameOf(member));
      for (const one of series) one.create(member, place);
    },
    change(member) {
      const before = members.get(nameOf(member));
      const place = places.of(nameOf(member));
      if (before === undefined || place === undefined) return;
      members.set(nameOf(member), member);
      for (const one of series) one.change(before, member, place);
    },
    remove(name) {
      members.delete(name);
      places.leave(name);
    },
    refresh(lookup) {
      for (const name of members.keys()) {
        const seen = lookup(name);
        const place = places.of(name);
        if (seen === undefined || place === undefined) continue;
        for (const one of series) one.show(place, seen);
      }
    },
    metrics: series,
  };
}
