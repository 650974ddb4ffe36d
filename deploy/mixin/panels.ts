/** The parts that Grafana's dashboards are made of: each function returns JSON as Grafana 10 reads it. */

export const DATASOURCE = { type: 'prometheus', uid: '$' + '{datasource}' };

type Json = Readonly<Record<string, unknown>>;
/** A colour from this value on; null for the lowest. */
export type Steps = readonly (readonly [color: string, from: number | null])[];
/** What is shown for a value: text and colour. */
export type Names = readonly (readonly [value: number | string, text: string, color: string])[];

export interface Described {
  readonly title: string;
  readonly description: string;
  /** By Grafana's names; `none` unless given. */
  readonly unit?: string;
}

export type Query = readonly [expr: string, legend: string];

export interface Column {
  readonly name: string;
  /** Overrides of the column, by Grafana's names. */
  readonly shows?: Json;
}

export interface Panel extends Json {
  readonly type: string;
}

const LETTERS = 'ABCDEFGHIJ';

const thresholds = (steps: Steps): Json => ({
  mode: 'absolute',
  steps: steps.map(([color, value]) => ({ color, value })),
});

export const mappings = (names: Names): Json[] => [
  {
    type: 'value',
    options: Object.fromEntries(names.map(([value, text, color], index) => [value, { text, color, index }])),
  },
];

export const override = (matcher: 'byName' | 'byRegexp', options: string, properties: Json): Json => ({
  matcher: { id: matcher, options },
  properties: Object.entries(properties).map(([id, value]) => ({ id, value })),
});

export const fixed = (fixedColor: string): Json => ({ color: { mode: 'fixed', fixedColor } });
export const stepped = (steps: Steps): Json => ({ thresholds: thresholds(steps) });
/** A colour from this value on, and none below. */
export const warned = (color: string, from: number): Json =>
  stepped([
    ['transparent', null],
    [color, from],
  ]);
export const filled = { 'custom.cellOptions': { type: 'color-background', mode: 'basic' } };
export const coloured = { 'custom.cellOptions': { type: 'color-text' } };

function targets(queries: readonly Query[], more: Json = {}): Json[] {
  return queries.map(([expr, legend], index) => ({
    refId: LETTERS[index],
    datasource: DATASOURCE,
    expr,
    legendFormat: legend,
    ...more,
  }));
}

const NOW = { instant: true, range: false };

/** A panel whose place is not known yet. */
function panel(type: string, { title, description }: Described, rest: Json): Panel {
  return { type, title, description, datasource: DATASOURCE, gridPos: {}, ...rest };
}

export interface StatOptions extends Described {
  readonly expr: string;
  readonly legend?: string;
  readonly steps: Steps;
  readonly names?: Names;
  readonly none?: string;
  readonly decimals?: number;
  readonly textMode?: 'auto' | 'name';
  readonly overrides?: readonly Json[];
}

/** One number, now. */
export function stat(options: StatOptions): Panel {
  const {
    expr,
    legend = '',
    unit = 'none',
    steps,
    names,
    none,
    decimals,
    textMode = 'auto',
    overrides = [],
  } = options;
  return panel('stat', options, {
    targets: targets([[expr, legend]], NOW),
    fieldConfig: {
      defaults: {
        unit,
        color: { mode: 'thresholds' },
        ...stepped(steps),
        ...(names === undefined ? {} : { mappings: mappings(names) }),
        ...(none === undefined ? {} : { noValue: none }),
        ...(decimals === undefined ? {} : { decimals }),
      },
      overrides,
    },
    options: {
      colorMode: 'background',
      graphMode: 'none',
      textMode,
      justifyMode: 'center',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
  });
}

export interface GraphOptions extends Described {
  readonly queries: readonly Query[];
  /** Stacked areas, bars of what was counted, or lines unless given. */
  readonly as?: 'stack' | 'bars' | 'lines';
  readonly legend?: readonly string[];
  /** 0 unless given; null for none. */
  readonly min?: null;
  readonly max?: number;
  /** Below this value the ground is red. */
  readonly redBelow?: number;
  readonly overrides?: readonly Json[];
}

/** Values over time. */
export function graph(options: GraphOptions): Panel {
  const {
    queries,
    unit = 'none',
    as = 'lines',
    legend = ['lastNotNull', 'max'],
    min = 0,
    max,
    redBelow,
  } = options;
  const custom = {
    drawStyle: as === 'bars' ? 'bars' : 'line',
    lineWidth: 1,
    fillOpacity: { lines: 5, stack: 30, bars: 80 }[as],
    showPoints: 'never',
    spanNulls: false,
    stacking: { mode: as === 'lines' ? 'none' : 'normal', group: 'A' },
    thresholdsStyle: { mode: redBelow === undefined ? 'off' : 'line' },
  };
  return panel('timeseries', options, {
    targets: targets(queries),
    fieldConfig: {
      defaults: {
        unit,
        custom,
        color: { mode: 'palette-classic' },
        ...(redBelow === undefined
          ? {}
          : stepped([
              ['red', null],
              ['transparent', redBelow],
            ])),
        ...(min === null ? {} : { min }),
        ...(max === undefined ? {} : { max }),
      },
      overrides: options.overrides ?? [],
    },
    options: {
      legend: { displayMode: 'table', placement: 'bottom', showLegend: true, calcs: legend },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  });
}

export interface TableOptions extends Described {
  /** One query for each of these columns; the last `columns.length` of them are their values. */
  readonly queries: readonly string[];
  /** Labels that are columns, in this order, before those of values. */
  readonly labels: readonly string[];
  /** The columns of the queries' values; `null` where only the labels of a query are shown. */
  readonly columns: readonly (Column | null)[];
  /** Rows of several queries are one where this label is equal; `merge` where all labels are. */
  readonly joinBy: string;
  readonly sortBy?: string;
  readonly none?: string;
  readonly overrides?: readonly Json[];
}

/** Labels and values as they stand now. */
export function table(options: TableOptions): Panel {
  const { queries, labels, columns, joinBy, sortBy, none, unit = 'none', overrides = [] } = options;
  const valueNames = columns.map((_, index) => (queries.length === 1 ? 'Value' : `Value #${LETTERS[index]}`));
  const shown = columns.flatMap((column, index) =>
    column === null ? [] : [{ column, name: valueNames[index] ?? '' }],
  );
  const order = [...labels, ...shown.map(({ name }) => name)];
  const join =
    queries.length === 1
      ? []
      : joinBy === 'merge'
        ? [{ id: 'merge', options: {} }]
        : [{ id: 'joinByField', options: { byField: joinBy, mode: 'outer' } }];
  return panel('table', options, {
    targets: targets(
      queries.map((expr) => [expr, '']),
      { ...NOW, format: 'table' },
    ),
    fieldConfig: {
      defaults: { unit, custom: { align: 'left' }, ...(none === undefined ? {} : { noValue: none }) },
      overrides: [
        ...shown.flatMap(({ column: { name, shows } }) =>
          shows === undefined ? [] : [override('byName', name, shows)],
        ),
        ...overrides,
      ],
    },
    options: {
      showHeader: true,
      cellHeight: 'sm',
      ...(sortBy === undefined ? {} : { sortBy: [{ displayName: sortBy, desc: false }] }),
    },
    transformations: [
      ...join,
      { id: 'filterFieldsByName', options: { include: { names: order } } },
      {
        id: 'organize',
        options: {
          excludeByName: {},
          indexByName: Object.fromEntries(order.map((name, index) => [name, index])),
          renameByName: Object.fromEntries(shown.map(({ column, name }) => [name, column.name])),
        },
      },
    ],
  });
}

export interface BarOptions extends Described {
  readonly expr: string;
  readonly legend: string;
  readonly steps: Steps;
  readonly none: string;
}

/** Shares from 0 to 1 as bars, now. */
export function bars(options: BarOptions): Panel {
  const { expr, legend, unit = 'none', steps, none } = options;
  return panel('bargauge', options, {
    targets: targets([[expr, legend]], NOW),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        max: 1,
        decimals: 0,
        noValue: none,
        color: { mode: 'thresholds' },
        ...stepped(steps),
      },
      overrides: [],
    },
    options: {
      displayMode: 'gradient',
      orientation: 'horizontal',
      valueMode: 'color',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
  });
}

/** States over time, one row for each series. */
export function timeline(options: Described & { query: Query; names: Names }): Panel {
  const { query, names, unit = 'none' } = options;
  return panel('state-timeline', options, {
    targets: targets([query]),
    fieldConfig: {
      defaults: {
        unit,
        custom: { lineWidth: 0, fillOpacity: 80 },
        color: { mode: 'thresholds' },
        mappings: mappings(names),
        ...stepped([['text', null]]),
      },
      overrides: [],
    },
    options: {
      showValue: 'auto',
      mergeValues: true,
      rowHeight: 0.85,
      alignValue: 'left',
      legend: { displayMode: 'list', placement: 'bottom', showLegend: false },
      tooltip: { mode: 'single', sort: 'none' },
    },
  });
}

/** Panels side by side. */
export interface Row {
  /** Stands above them, on a line of its own. */
  readonly title?: string;
  readonly height: number;
  /** In cells of a grid of 24 columns; all the same unless given. */
  readonly widths?: readonly number[];
  readonly panels: readonly Panel[];
}

/** The panels of all rows, each in its place. */
function laidOut(rows: readonly Row[]): Panel[] {
  let y = 0;
  return rows.flatMap(({ title, height: h, panels, widths }) => {
    const head = { type: 'row', title, gridPos: { x: 0, y, w: 24, h: 1 }, collapsed: false, panels: [] };
    if (title !== undefined) y += 1;
    let right = 0;
    const placed = panels.map((one, index) => {
      const w = widths?.[index] ?? 24 / panels.length;
      right += w;
      return { ...one, gridPos: { x: right - w, y, w, h } };
    });
    y += h;
    return title === undefined ? placed : [head, ...placed];
  });
}

export interface Variable {
  readonly name: string;
  readonly selector: string;
  /** What "All" stands for; all values that were found unless given. */
  readonly all?: string;
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly variables: readonly Variable[];
  readonly links: readonly Json[];
  readonly annotations: readonly Json[];
  readonly rows: readonly Row[];
}

/** A dashboard that cannot be edited by accident, and needs nothing but a data source. */
export function dashboard({ uid, title, description, variables, links, annotations, rows }: Dashboard): Json {
  return {
    uid,
    title,
    description,
    tags: ['killswitchd'],
    schemaVersion: 39,
    version: 1,
    editable: false,
    graphTooltip: 1,
    refresh: '5s',
    timezone: '',
    time: { from: 'now-30m', to: 'now' },
    timepicker: { refresh_intervals: ['5s', '10s', '30s', '1m', '5m'] },
    liveNow: true,
    links,
    annotations: { list: annotations },
    templating: { list: [sourceVariable(), ...variables.map(queryVariable)] },
    panels: laidOut(rows).map((one, index) => ({ id: index + 1, ...one })),
  };
}

function sourceVariable(): Json {
  return {
    name: 'datasource',
    label: 'Data Source',
    type: 'datasource',
    query: 'prometheus',
    refresh: 1,
    hide: 0,
    multi: false,
    includeAll: false,
    options: [],
    current: {},
  };
}

function queryVariable({ name, selector, all }: Variable): Json {
  const query = `label_values(${selector}, ${name})`;
  return {
    name,
    label: name.charAt(0).toUpperCase() + name.slice(1),
    type: 'query',
    datasource: DATASOURCE,
    query: { query, refId: `variable-${name}` },
    definition: query,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    hide: 0,
    options: [],
    current: { selected: true, text: ['All'], value: ['$__all'] },
    ...(all === undefined ? {} : { allValue: all }),
  };
}

export function link(title: string, url: string, tooltip: string, more: Json = {}): Json {
  const outside = url.startsWith('http');
  return {
    title,
    type: 'link',
    url,
    tooltip,
    icon: outside ? 'doc' : 'dashboard',
    targetBlank: outside,
    asDropdown: false,
    includeVars: false,
    keepTime: !outside,
    tags: [],
    ...more,
  };
}

export function annotation(name: string, color: string, expr: string, title: string): Json {
  return {
    name,
    datasource: DATASOURCE,
    enable: true,
    hide: false,
    iconColor: color,
    expr,
    step: '15s',
    titleFormat: title,
    textFormat: '',
    tagKeys: '',
  };
}
