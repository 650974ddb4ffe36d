import { describe, expect, test } from 'vitest';
import { DEFAULTS } from '../../deploy/mixin/config.ts';
import { telemetryTables } from '../docs/telemetry-tables.ts';
import { DASHBOARDS, expressionsOf, readDashboard } from './dashboards.ts';
import { countersWithoutRate, namedIn, TARGET_LABELS } from './promql.ts';

/** The names that Grafana has for the units that we use; another one it shows as text behind the number. */
const UNITS = ['none', 'short', 'bool', 'bytes', 'cps', 'reqps', 'percentunit', 's', 'dateTimeFromNow'];

/** The rules of Grafana's dashboard-linter, and a few of our own. */
describe.each(DASHBOARDS)('%s', (path) => {
  const dashboard = readDashboard(path);
  const { panels, templating, links } = dashboard;
  const shown = panels.filter(({ type }) => type !== 'row');
  const variables = templating.list;

  test('cannot be edited by accident, and is imported without a question but for the data source', () => {
    expect(path).toContain(`/${dashboard.uid}.json`);
    expect(dashboard).toMatchObject({ tags: ['killswitchd'], editable: false });
    expect(Object.keys(dashboard)).not.toContain('__inputs');
    expect(Object.keys(dashboard)).not.toContain('id');
    expect(JSON.stringify(dashboard)).not.toMatch(/"uid":"(?!\$\{datasource\}|killswitchd-)/);
  });

  test('can be narrowed to a job and an instance, and "All" names only jobs of killswitchd', () => {
    const found = (name: string) => variables.find((variable) => variable.name === name);
    expect(found('job')).toMatchObject({ multi: true, includeAll: true, refresh: 2 });
    expect(found('job')).not.toHaveProperty('allValue');
    expect(found('instance')).toMatchObject({ multi: true, includeAll: true, allValue: '.+', refresh: 2 });
  });

  test('says what every panel shows, with a unit that Grafana has, an explanation and a legend', () => {
    for (const { title, type, description, targets = [], fieldConfig } of shown) {
      expect(title).not.toBe('');
      expect(description?.length, title).toBeGreaterThan(19);
      expect(UNITS, title).toContain(fieldConfig?.defaults.unit);
      const named = targets.filter(({ legendFormat }) => legendFormat !== '');
      if (['timeseries', 'state-timeline', 'bargauge'].includes(type))
        expect(named, title).toHaveLength(targets.length);
    }
  });

  test('asks for the chosen job and instance in every selector, alerts included', () => {
    const loose = expressionsOf(dashboard).flatMap(({ where, expr }) =>
      namedIn(expr)
        .selectors.filter(({ metric, matchers }) => {
          const chosen = matchers.map(({ label, value }) => `${label}=${value}`);
          // An alert may be about no job or instance in particular.
          const or = metric === 'ALERTS' ? '|' : '';
          return !chosen.includes(`job=$job${or}`) || !chosen.includes(`instance=$instance${or}`);
        })
        .map(({ metric }) => `${where}: ${metric}`),
    );
    expect(loose).toEqual([]);
    const alerts = expressionsOf(dashboard).find(({ where }) => where === 'Firing alerts A')?.expr;
    expect(alerts).toContain('alertname!="KillswitchWatchdog"');
  });

  test('asks by variables that it has, and for counters as rates over a time that fits the scrapes', () => {
    const names = [...variables.map(({ name }) => name), '__rate_interval', '__range'];
    for (const { where, expr } of expressionsOf(dashboard)) {
      const asked = [...expr.matchAll(/\$(\w+)/g)].map(([, name = '']) => name);
      const strange = asked.filter((name) => !names.includes(name));
      expect(strange, where).toEqual([]);
      expect(countersWithoutRate(expr), where).toEqual([]);
      const windows = [...expr.matchAll(/\b(?:rate|increase|changes)\([^[]*\[([^\]]+)\]/g)];
      for (const [, time] of windows) expect(['$__rate_interval', '$__range'], where).toContain(time);
    }
  });

  test('names its lines by labels that they have', async () => {
    const { labelsOf } = await telemetryTables();
    const named = [
      ...shown.flatMap(({ targets = [] }) => targets.map(({ expr, legendFormat }) => [expr, legendFormat])),
      ...dashboard.annotations.list.map(({ expr, titleFormat }) => [expr, titleFormat]),
    ];
    const strange = named.flatMap(([expr = '', text = '']) => {
      const { selectors, grouping } = namedIn(expr);
      const own = selectors.flatMap(({ metric }) => labelsOf.get(metric) ?? []);
      const left = /^\w* ?by\s*\(/.test(expr) ? grouping : [...own, ...TARGET_LABELS];
      const asked = [...text.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, label = '']) => label);
      return asked.filter((label) => !left.includes(label));
    });
    expect(strange).toEqual([]);
  });

  test('leads to the runbooks and to the other dashboard, and its tables to dashboards that are there', () => {
    const uids = DASHBOARDS.map((other) => readDashboard(other).uid);
    const others = uids.filter((uid) => uid !== dashboard.uid).map((uid) => `/d/${uid}`);
    expect(links.map(({ url }) => url)).toEqual([DEFAULTS.runbookUrl, ...others]);
    const inner = [...JSON.stringify(panels).matchAll(/"url":"\/d\/([\w-]+)/g)].map(([, uid]) => uid ?? '');
    expect(inner.filter((uid) => !uids.includes(uid))).toEqual([]);
  });
});
