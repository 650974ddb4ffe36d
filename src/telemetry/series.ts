import { escaped, type Places } from './places.ts';

/** What a metric is, whatever its values. */
export interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  /** The one that names the member comes first. */
  readonly labels: readonly string[];
}

/** One metric of a shard. `Seen` is what a snapshot says of a member (market, or bot). */
export interface Series<Member, Seen> extends Described {
  /** The line of every sample, each with its end. */
  samples(): string;
  /** Grows whenever the lines change, and never else. */
  version(): number;
  /** How many lines a member has, about. */
  readonly lines: number;
  /** Creates the samples of a member with their values before anything has happened. */
  create(member: Member, place: number): void;
  /** Something else is configured for the member now. */
  change(before: Member, after: Member, place: number): void;
  show(place: number, seen: Seen): void;
}

/** A counter by member, and by one more label where `L` names it. */
export interface CounterSeries<Own extends string, L extends string = never> {
  inc(labels: Record<Own | L, string>): void;
}

/** How the metrics of one kind of member are declared, each in the list of `series`. */
export interface Declarer<Member, Seen, Own extends string> {
  readonly series: readonly Series<Member, Seen>[];
  /** A number that is read off the snapshot; `initial` stands until the first one, and again once it differs. */
  gauge(name: string, help: string, initial: (member: Member) => number, read: (seen: Seen) => number): void;
  /** 1 for the one of `values` that the snapshot names, 0 for the others; one that is none of them is shown as well. */
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

export interface DeclarerOptions<Own extends string> {
  /** The label that names a member. */
  readonly own: Own;
  readonly places: Places;
}

/** The lines HELP and TYPE, which a metric may have only once on a page. */
export function headerOf({ name, help, type }: Described): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function labelText(label: string, value: string): string {
  return `,${label}="${escaped(value)}"`;
}

/**
 * The metrics of a shard. Their values stand in plain arrays, by the place of the member: a label set and a map entry
 * for each of the dozens of series of ten thousand markets would take more memory than everything else together. Lines
 * are made while a page is.
 */
export function createDeclarer<Member, Seen, Own extends string>(
  options: DeclarerOptions<Own>,
): Declarer<Member, Seen, Own> {
  const series: Series<Member, Seen>[] = [];
  return {
    series,
    gauge(name, help, initial, read) {
      const { set, ...columns } = createColumns(options, name, ['']);
      series.push({
        ...columns,
        name,
        help,
        type: 'gauge',
        labels: [options.own],
        create: (member, place) => set(place, 0, initial(member)),
        change: (before, after, place) => {
          if (initial(before) !== initial(after)) set(place, 0, initial(after));
        },
        show: (place, seen) => set(place, 0, read(seen)),
      });
    },
    stateset: (...declared) => series.push(declareStateset(options, ...declared)),
    info: (...declared) => series.push(declareInfo(options, ...declared)),
    counter<L extends string>(name: string, help: string, label?: L, values: readonly string[] = []) {
      const counter = declareCounter(options, name, help, label, values);
      series.push(counter);
      return counter;
    },
  };
}

interface Columns extends Pick<Series<never, never>, 'samples' | 'version' | 'lines'> {
  readonly get: (place: number, column: number) => number;
  readonly set: (place: number, column: number, value: number) => void;
}

/** Numbers by place and column, and their lines: one column for each of `tails`, which are what follows the own label. */
function createColumns<Own extends string>(
  { own, places }: DeclarerOptions<Own>,
  name: string,
  tails: readonly string[],
): Columns {
  let changes = 0;
  const values = new Float64Array(places.most * tails.length);
  const starts = `${name}{${own}="`;
  const ends = tails.map((tail) => `"${tail}} `);
  const zeros = createForm(ends.map((end) => `${starts}${MEMBER}${end}0\n`));
  const isZero = (place: number): boolean => {
    for (let at = place * ends.length; at < (place + 1) * ends.length; at += 1)
      if (values[at] !== 0) return false;
    return true;
  };
  return {
    lines: tails.length,
    version: () => places.version() + changes,
    get: (place, column) => values[place * ends.length + column] ?? 0,
    set(place, column, value) {
      const at = place * ends.length + column;
      if (values[at] === value) return;
      values[at] = value;
      changes += 1;
    },
    samples() {
      let text = '';
      for (let place = 0; place < places.labels.length; place += 1) {
        const member = places.labels[place];
        if (member == null) continue;
        if (isZero(place)) {
          text += zeros(member);
          continue;
        }
        const start = starts + member;
        for (let column = 0; column < ends.length; column += 1)
          text += `${start}${ends[column] ?? ''}${values[place * ends.length + column] ?? 0}\n`;
      }
      return text;
    },
  };
}

/** Stands for the member in a form; no name has it. */
const MEMBER = '\0';

/**
 * The same lines for any member. Most samples never change: to put them together piece by piece would make half a
 * million pieces out of ten thousand markets for every page.
 */
function createForm(lines: readonly string[]): (member: string) => string {
  const pieces = lines.join('').split(MEMBER);
  return (member) => pieces.join(member);
}

function declareStateset<Member, Seen, Own extends string>(
  { own, places }: DeclarerOptions<Own>,
  name: string,
  help: string,
  label: string,
  values: readonly string[],
  read: (seen: Seen) => string | null,
): Series<Member, Seen> {
  let changes = 0;
  const shown: (string | null)[] = [];
  const show = (place: number, now: string | null): void => {
    if (shown[place] === now) return;
    shown[place] = now;
    changes += 1;
  };
  const starts = `${name}{${own}="`;
  const line = (value: string, sample: 0 | 1) => `${starts}${MEMBER}"${labelText(label, value)}} ${sample}\n`;
  const formOf = (now: string | null) => {
    const known = values.map((value) => line(value, value === now ? 1 : 0));
    return createForm(now === null || values.includes(now) ? known : [...known, line(now, 1)]);
  };
  const forms = new Map<string | null, ReturnType<typeof createForm>>();
  return {
    name,
    help,
    type: 'gauge',
    labels: [own, label],
    lines: Math.max(1, values.length),
    version: () => places.version() + changes,
    samples() {
      let text = '';
      for (let place = 0; place < places.labels.length; place += 1) {
        const member = places.labels[place];
        if (member == null) continue;
        const now = shown[place] ?? null;
        const form = forms.get(now) ?? formOf(now);
        forms.set(now, form);
        text += form(member);
      }
      return text;
    },
    create: (_, place) => show(place, null),
    change: () => {},
    show: (place, seen) => show(place, read(seen)),
  };
}

function declareInfo<Member, Seen, Own extends string>(
  { own, places }: DeclarerOptions<Own>,
  name: string,
  help: string,
  labels: readonly string[],
  of: (member: Member) => string[],
): Series<Member, Seen> {
  let changes = 0;
  const tails: string[] = [];
  const create = (member: Member, place: number): void => {
    const tail = of(member)
      .map((value, index) => labelText(labels[index] ?? '', value))
      .join('');
    if (tails[place] === tail) return;
    tails[place] = tail;
    changes += 1;
  };
  return {
    name,
    help,
    type: 'gauge',
    labels: [own, ...labels],
    lines: 1,
    version: () => places.version() + changes,
    samples: () =>
      places.labels
        .map((member, place) =>
          member === null ? '' : `${name}{${own}="${member}"${tails[place] ?? ''}} 1\n`,
        )
        .join(''),
    create,
    change: (_, after, place) => create(after, place),
    show: () => {},
  };
}

function declareCounter<Member, Seen, Own extends string>(
  options: DeclarerOptions<Own>,
  name: string,
  help: string,
  label: string | undefined,
  values: readonly string[],
): Series<Member, Seen> & CounterSeries<Own, string> {
  const { own, places } = options;
  const tails = label === undefined ? [''] : values.map((value) => labelText(label, value));
  const columns = new Map(
    label === undefined ? [[undefined, 0]] : values.map((value, column) => [value, column]),
  );
  const { get, set, ...shown } = createColumns(options, name, tails);
  return {
    ...shown,
    name,
    help,
    type: 'counter',
    labels: label === undefined ? [own] : [own, label],
    inc: (labels: Record<string, string>) => {
      const place = places.of(labels[own] ?? '');
      const column = columns.get(label === undefined ? undefined : labels[label]);
      if (place === undefined || column === undefined) return;
      set(place, column, get(place, column) + 1);
    },
    create: (_, place) => {
      for (const column of columns.values()) set(place, column, 0);
    },
    change: () => {},
    show: () => {},
  };
}
