import { Counter, Gauge, type Registry } from 'prom-client';

/** The series of one metric for each member (market, or bot) of a shard. `Seen` is what a snapshot says of a member. */
export interface Series<Member, Seen> {
  /** Creates them with their values before anything has happened. */
  create(member: Member): void;
  /** Something else is configured for the member now. */
  change(before: Member, after: Member): void;
  remove(member: Member): void;
  show(name: string, seen: Seen): void;
}

/** A counter by member, and by one more label where `L` names it. */
export interface CounterSeries<Own extends string, L extends string = never> {
  inc(labels: Record<Own | L, string>): void;
}

/** How the metrics of one kind of member are declared: each in the registry, and in the list of `series`. */
export interface Declarer<Member, Seen, Own extends string> {
  readonly series: readonly Series<Member, Seen>[];
  /** A number that is read off the snapshot; `initial` stands until the first one, and again once it differs. */
  gauge(name: string, help: string, initial: (member: Member) => number, read: (seen: Seen) => number): void;
  /** 1 for the one of `values` that the snapshot names, 0 for the others. */
  stateset(
    name: string,
    help: string,
    label: string,
    values: readonly string[],
    read: (seen: Seen) => string | null,
  ): void;
  /** Always 1; what is configured stands in the labels. */
  info(name: string, help: string, labels: readonly string[], of: (member: Member) => string[]): void;
  readonly counter: {
    (name: string, help: string): CounterSeries<Own>;
    <L extends string>(
      name: string,
      help: string,
      label: L,
      values: readonly string[],
    ): CounterSeries<Own, L>;
  };
}

export interface DeclarerOptions<Member, Own extends string> {
  readonly registry: Registry;
  /** The label that names a member. */
  readonly own: Own;
  readonly nameOf: (member: Member) => string;
  /** Told the name of a metric of which a value is no longer what it was. */
  readonly touch: (metric: string) => void;
}

export function createDeclarer<Member, Seen, Own extends string>(
  options: DeclarerOptions<Member, Own>,
): Declarer<Member, Seen, Own> {
  const { registry, own, nameOf, touch } = options;
  const registers = [registry];
  const series: Series<Member, Seen>[] = [];
  return {
    series,
    gauge(name, help, initial, read) {
      const gauge = new Gauge<string>({ name, help, labelNames: [own], registers });
      const shown = new Map<string, number>();
      const set = (member: string, value: number): void => {
        if (shown.get(member) === value) return;
        shown.set(member, value);
        gauge.set({ [own]: member }, value);
        touch(name);
      };
      series.push({
        create: (member) => set(nameOf(member), initial(member)),
        change: (before, after) => {
          if (initial(before) !== initial(after)) set(nameOf(after), initial(after));
        },
        remove: (member) => {
          shown.delete(nameOf(member));
          gauge.remove({ [own]: nameOf(member) });
          touch(name);
        },
        show: (member, seen) => set(member, read(seen)),
      });
    },
    stateset: (...declared) => series.push(declareStateset(options, ...declared)),
    info(name, help, labels, of) {
      const labelNames = [own, ...labels];
      const gauge = new Gauge<string>({ name, help, labelNames, registers });
      const labelsOf = (member: Member) =>
        Object.fromEntries([nameOf(member), ...of(member)].map((value, index) => [labelNames[index], value]));
      const create = (member: Member): void => {
        gauge.set(labelsOf(member), 1);
        touch(name);
      };
      const remove = (member: Member): void => {
        gauge.remove(labelsOf(member));
        touch(name);
      };
      const change = (before: Member, after: Member): void => {
        // Most of what a reload reads again is what it was.
        if (JSON.stringify(of(before)) === JSON.stringify(of(after))) return;
        remove(before);
        create(after);
      };
      series.push({ create, change, remove, show: () => {} });
    },
    counter<L extends string>(name: string, help: string, label?: L, values: readonly string[] = []) {
      const counter = declareCounter(options, name, help, label, values);
      series.push(counter);
      return counter;
    },
  };
}

function declareStateset<Member, Seen, Own extends string>(
  { registry, own, nameOf, touch }: DeclarerOptions<Member, Own>,
  name: string,
  help: string,
  label: string,
  values: readonly string[],
  read: (seen: Seen) => string | null,
): Series<Member, Seen> {
  const gauge = new Gauge<string>({ name, help, labelNames: [own, label], registers: [registry] });
  const shown = new Map<string, string>();
  return {
    create: (member) => {
      for (const value of values) gauge.set({ [own]: nameOf(member), [label]: value }, 0);
      touch(name);
    },
    change: () => {},
    remove: (member) => {
      const last = shown.get(nameOf(member));
      for (const value of last === undefined ? values : new Set([...values, last])) {
        gauge.remove({ [own]: nameOf(member), [label]: value });
      }
      shown.delete(nameOf(member));
      touch(name);
    },
    show: (member, seen) => {
      const now = read(seen);
      const last = shown.get(member) ?? null;
      if (now === last) return;
      if (last !== null) gauge.set({ [own]: member, [label]: last }, 0);
      if (now !== null) gauge.set({ [own]: member, [label]: now }, 1);
      if (now === null) shown.delete(member);
      else shown.set(member, now);
      touch(name);
    },
  };
}

function declareCounter<Member, Own extends string>(
  { registry, own, nameOf, touch }: DeclarerOptions<Member, Own>,
  name: string,
  help: string,
  label: string | undefined,
  values: readonly string[],
): Series<Member, unknown> & CounterSeries<Own, string> {
  const labelNames = label === undefined ? [own] : [own, label];
  const counter = new Counter<string>({ name, help, labelNames, registers: [registry] });
  const seriesOf = (member: Member): Record<string, string>[] => {
    const market = { [own]: nameOf(member) };
    return label === undefined ? [market] : values.map((value) => ({ ...market, [label]: value }));
  };
  return {
    inc: (labels) => {
      counter.inc(labels);
      touch(name);
    },
    create: (member) => {
      for (const labels of seriesOf(member)) counter.inc(labels, 0);
      touch(name);
    },
    change: () => {},
    remove: (member) => {
      for (const labels of seriesOf(member)) counter.remove(labels);
      touch(name);
    },
    show: () => {},
  };
}
