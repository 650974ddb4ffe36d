import { describe, expect, test } from 'vitest';
import { telemetryTables } from '../docs/telemetry-tables.ts';
import { DASHBOARDS, expressionsOf, type GridPos, readDashboard } from './dashboards.ts';
import { countersWithoutRate, namedIn, TARGET_LABELS } from './promql.ts';

const SOURCE = '$' + '{datasource}';

const overlap = (one: GridPos, other: GridPos): boolean =>
  one.x < other.x + other.w &&
  other.x < one.x + one.w &&
  one.y < other.y + other.h &&
  other.y < one.y + one.h;

/** The names that Grafana has for the units that we use; another one it shows as text behind the number. */
const UNITS = ['none', 'short', 'bool', 'bytes', 'cps', 'reqps', 'percentunit', 's', 'dateTimeFromNow'];

/** The rules of Grafana's dashboard-linter, and a few of our own. */
describe.each(DASHBOARDS)('%s', (path) => {
  const dashboard = readDashboard(path);
  const { panels, templating, links } = dashboard;
  const shown = panels.filter(({ type }) => type !== 'row');
  const variables = templating.list;
  const queries = variables.filter(({ type }) => type === 'query');

  test('has a stable name, cannot be edited by accident, and needs nothing put in on import', () => {
    expect(path).toContain(`/${dashboard.uid}.json`);
    expect(dashboard.tags).toEqual(['killswitchd']);
    expect(dashboard.editable).toBe(false);
    expect(Object.keys(dashboard)).not.toContain('__inputs');
    expect(Object.keys(dashboard)).not.toContain('id');
  });

  test('has one variable for the data source, and everything uses it', () => {
    const sources = variables.filter(({ type }) => type === 'datasource');
    expect(sources).toMatchObject([{ name: 'datasource', label: 'Data Source', query: 'prometheus' }]);
    const used = [
      ...queries.map(({ datasource }) => datasource?.uid),
      ...dashboard.annotations.list.map(({ datasource }) => datasource.uid),
      ...shown.flatMap(({ datasource, targets = [] }) => [
        datasource?.uid,
        ...targets.map((target) => target.datasource.uid),
      ]),
    ];
    expect(new Set(used)).toEqual(new Set([SOURCE]));
  });

  test('can be narrowed to a job and an instance, and follows the time that is looked at', () => {
    for (const name of ['job', 'instance']) {
      expect(variables.find((variable) => variable.name === name)).toMatchObject({
        multi: true,
        includeAll: true,
        allValue: '.+',
      });
    }
    expect(queries.filter(({ refresh }) => refresh !== 2)).toEqual([]);
    for (const { name, definition, query } of queries) {
      expect(query, name).toMatchObject({ query: definition });
    }
  });

  test('says what every panel shows, with a unit, an explanation and a legend', () => {
    const bare = shown.filter(
      ({ title, description = '', targets = [], fieldConfig }) =>
        title === '' ||
        description.length < 20 ||
        targets.length === 0 ||
        fieldConfig?.defaults.unit === undefined,
    );
    expect(bare.map(({ title }) => title)).toEqual([]);
    const nameless = shown
      .filter(({ type }) => ['timeseries', 'state-timeline', 'bargauge'].includes(type))
      .filter(({ targets = [] }) => targets.some(({ legendFormat }) => legendFormat === ''));
    expect(nameless.map(({ title }) => title)).toEqual([]);
  });

  test('asks for the chosen job and instance in every selector', () => {
    const loose = expressionsOf(dashboard).flatMap(({ where, expr }) =>
      namedIn(expr)
        // Some alerts are about no instance in particular.
        .selectors.filter(({ metric }) => metric !== 'ALERTS')
        .filter(({ matchers }) => {
          const chosen = matchers.map(({ label, value }) => `${label}=${value}`);
          return !chosen.includes('job=$job') || !chosen.includes('instance=$instance');
        })
        .map(({ metric }) => `${where}: ${metric}`),
    );
    expect(loose).toEqual([]);
  });

  test('asks by variables that it has, and calls each state by its name', () => {
    const names = [...variables.map(({ name }) => name), '__rate_interval', '__range'];
    const asked = expressionsOf(dashboard).flatMap(({ expr }) => [...expr.matchAll(/\$(\w+)/g)]);
    expect(asked.map(([, name = '']) => name).filter((name) => !names.includes(name))).toEqual([]);
    for (const { title, targets = [], fieldConfig } of shown) {
      const numbered = targets.flatMap(({ expr }) => [
        ...expr.matchAll(/\b(\d) \* \(killswitch_market_state\{[^}]*state="(\w+)"\}/g),
      ]);
      for (const [, number, state] of numbered) {
        expect(JSON.stringify(fieldConfig), title).toContain(`"${number}":{"text":"${state}"`);
      }
    }
  });

  test('shows counters as rates, over a time that fits the scrape interval', () => {
    const expressions = expressionsOf(dashboard);
    expect(expressions.flatMap(({ expr }) => countersWithoutRate(expr))).toEqual([]);
    const fixed = expressions.filter(({ expr }) =>
      [...expr.matchAll(/(?:rate|increase|changes)\([^[]*\[([^\]]+)\]/g)].some(
        ([, time = '']) => !['$__rate_interval', '$__range'].includes(time),
      ),
    );
    expect(fixed).toEqual([]);
  });

  test('gives every panel a number and a place of its own on a grid of 24', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const places = panels.map(({ gridPos, title }) => ({ ...gridPos, title }));
    expect(places.filter(({ x, w, h }) => x < 0 || x + w > 24 || h < 1)).toEqual([]);
    const covered = places.flatMap((one, index) =>
      places
        .slice(index + 1)
        .flatMap((other) => (overlap(one, other) ? [`${one.title}: ${other.title}`] : [])),
    );
    expect(covered).toEqual([]);
  });

  test('colours and names only columns that its tables have', () => {
    for (const { title, targets = [], fieldConfig, transformations = [] } of shown) {
      const organize = transformations.find(({ id }) => id === 'organize')?.options;
      if (organize === undefined) continue;
      const { renameByName = {}, indexByName = {} } = organize;
      const values = targets.map(({ refId }) => `Value #${refId}`);
      const labels = targets.flatMap(({ expr }) => namedIn(expr).grouping);
      const columns = [...values, ...labels];
      const named = [...Object.keys(renameByName), ...Object.keys(indexByName)];
      expect(
        named.filter((name) => !columns.includes(name)),
        title,
      ).toEqual([]);
      const headings = columns.map((name) => renameByName[name] ?? name);
      const coloured = fieldConfig?.overrides.map(({ matcher }) => matcher.options) ?? [];
      expect(
        coloured.filter((name) => !headings.includes(name)),
        title,
      ).toEqual([]);
    }
  });

  test('shows units that Grafana has', () => {
    const units = [...JSON.stringify(panels).matchAll(/"(?:unit":|id":"unit","value":)"([^"]*)"/g)];
    expect(units.length).toBeGreaterThan(shown.length);
    expect(units.map(([, unit = '']) => unit).filter((unit) => !UNITS.includes(unit))).toEqual([]);
  });

  test('names its lines by labels that they have', async () => {
    const { labelsOf } = await telemetryTables();
    const named = [
      ...shown.flatMap(({ targets = [] }) => targets.map(({ expr, legendFormat }) => [expr, legendFormat])),
      ...dashboard.annotations.list.map((own) => [own.expr, `${own.titleFormat} ${own.textFormat}`]),
    ];
    const strange = named.flatMap(([expr = '', text = '']) => {
      const { selectors, grouping } = namedIn(expr);
      const own = selectors.flatMap(({ metric }) => labelsOf.get(metric) ?? []);
      const left = /\bby\s*\(/.test(expr) ? grouping : [...own, ...TARGET_LABELS];
      const asked = [...text.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, label = '']) => label);
      return asked.filter((label) => !left.includes(label));
    });
    expect(strange).toEqual([]);
  });

  test('leads from a line of a table to a dashboard, with variables and columns that are there', () => {
    for (const { title, targets = [], fieldConfig } of shown) {
      const links = [...JSON.stringify(fieldConfig).matchAll(/"url":"(\/d\/[^"]*)"/g)];
      for (const [, url = ''] of links) {
        const [path = '', query = ''] = url.split('?');
        const other = DASHBOARDS.map(readDashboard).find(({ uid }) => path === `/d/${uid}`);
        const names = other?.templating.list.map(({ name }) => name) ?? [];
        const asked = [...query.matchAll(/var-(\w+)=\$\{__data\.fields\.(\w+)\}/g)];
        expect(asked.length, title).toBeGreaterThan(0);
        const columns = targets.flatMap(({ expr }) => namedIn(expr).grouping);
        for (const [, variable = '', column = ''] of asked) {
          expect(names, url).toContain(variable);
          expect(columns, url).toContain(column);
        }
      }
    }
  });

  test('leads to the runbooks and to the other dashboard', () => {
    const uids = DASHBOARDS.map((other) => readDashboard(other).uid).filter((uid) => uid !== dashboard.uid);
    expect(links.map(({ url }) => url)).toEqual([
      'https://killswitchd.example/docs/runbooks.md',
      ...uids.map((uid) => `/d/${uid}`),
    ]);
  });
});
