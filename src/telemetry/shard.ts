import { Registry } from 'prom-client';
import { createDeclarer, type Declarer } from './series.ts';

/**
 * The metrics of a bounded number of members (markets, or bots), in a registry of their own. prom-client builds the text
 * of a metric in one piece: over ten thousand markets that would hold the event loop for a tenth of a second and more.
 * Most series hardly ever change, so each text is kept until one of its values does.
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
  /** Names of the metrics, the same in every shard that was declared alike. */
  readonly names: readonly string[];
  /** The text of one metric: HELP, TYPE and the samples. */
  text(metric: string): Promise<string>;
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
export function createShard<Member, Seen, Own extends string, Counters>(
  { own, nameOf, declare }: ShardKind<Member, Seen, Own, Counters>,
  registry = new Registry(),
): Shard<Member, Seen, Counters> {
  const texts = new Map<string, Promise<string>>();
  const touch = (metric: string): void => void texts.delete(metric);
  const declarer = createDeclarer<Member, Seen, Own>({ registry, own, nameOf, touch });
  const counters = declare(declarer);
  const members = new Map<string, Member>();
  return {
    counters,
    size: () => members.size,
    add(member) {
      members.set(nameOf(member), member);
      for (const series of declarer.series) series.create(member);
    },
    change(member) {
      const before = members.get(nameOf(member));
      if (before === undefined) return;
      members.set(nameOf(member), member);
      for (const series of declarer.series) series.change(before, member);
    },
    remove(name) {
      const member = members.get(name);
      if (member === undefined) return;
      members.delete(name);
      for (const series of declarer.series) series.remove(member);
    },
    refresh(lookup) {
      for (const name of members.keys()) {
        const seen = lookup(name);
        if (seen === undefined) continue;
        for (const series of declarer.series) series.show(name, seen);
      }
    },
    names: registry.getMetricsAsArray().map((metric) => metric.name),
    text(metric) {
      let text = texts.get(metric);
      if (text === undefined) {
        text = registry.getSingleMetricAsString(metric);
        texts.set(metric, text);
      }
      return text;
    },
  };
}
