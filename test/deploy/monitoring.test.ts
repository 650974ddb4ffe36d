import { globSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configOf, DEFAULTS } from '../../deploy/mixin/config.ts';
import { mixinFiles } from '../../deploy/mixin/main.ts';
import { read } from '../docs/documents.ts';
import { anchorsOf } from '../docs/markdown.ts';
import { CLOSED_LABELS, telemetryTables } from '../docs/telemetry-tables.ts';
import { DASHBOARDS, expressionsOf, labelQueryOf, readDashboard } from './dashboards.ts';
import { nameChecker, namedIn, TARGET_LABELS } from './promql.ts';
import { alertsOf, deployed, RULES, type RuleFile, readDeployed, rulesOf } from './rules.ts';

const RUNBOOKS = 'docs/runbooks.md';
const RULE_OBJECT = 'prometheus/killswitchd.prometheusrule.yaml';
const PROMETHEUS = 'prometheus/prometheus.yaml';
const KUBERNETES = 'prometheus/scrape-kubernetes.yaml';
const ALERTMANAGER = 'prometheus/alertmanager.yaml';
const DATA_SOURCE = 'grafana/provisioning/datasources/prometheus.yaml';
const PROVIDER = 'grafana/provisioning/dashboards/killswitchd.yaml';

const alerts = alertsOf(RULES);
const names = alerts.map(({ alert }) => alert);

test('every file for Prometheus and Grafana is looked at here and named in deploy/README.md', () => {
  const files = globSync('{prometheus,grafana}/**/*.{yaml,json}', { cwd: deployed('.') });
  const own = [RULES, RULE_OBJECT, PROMETHEUS, KUBERNETES, ALERTMANAGER, DATA_SOURCE, PROVIDER];
  expect(files.toSorted()).toEqual([...own, ...DASHBOARDS].toSorted());
  const text = readDeployed('README.md');
  expect(files.filter((path) => !text.includes(path))).toEqual([]);
});

describe('the mixin', () => {
  test('wrote the files that are here (else: npm run mixin)', () => {
    for (const [path, text] of mixinFiles(DEFAULTS)) expect(readDeployed(path) === text, path).toBe(true);
  });

  test('puts the selector, severities, labels and addresses that it is given into every rule', () => {
    const given = {
      selector: 'job="timers", env="prod"',
      severities: { critical: 'page' },
      alertLabels: { team: 'trading' },
      ruleObjectLabels: { release: 'monitoring' },
      runbookUrl: 'https://wiki.example/kill',
      grafanaUrl: 'https://dash.example',
    };
    const files = mixinFiles(configOf(given));
    const { groups } = parse(files.get(RULES) ?? '') as RuleFile;
    const rules = groups.flatMap((group) => group.rules);
    for (const rule of rules) {
      const plain = namedIn(rule.expr).selectors.filter(
        ({ metric, matchers }) => !metric.includes(':') && !matchers.some(({ label }) => label === 'env'),
      );
      expect(plain, rule.expr).toEqual([]);
      if (!('alert' in rule)) continue;
      expect(rule.labels).toEqual({
        severity: expect.stringMatching(/^(page|warning|info)$/),
        team: 'trading',
      });
      expect(rule.annotations['runbook_url']).toMatch(/^https:\/\/wiki\.example\/kill#killswitch/);
      expect(rule.annotations['dashboard_url']).toMatch(/^https:\/\/dash\.example\/d\/killswitchd-/);
    }
    expect(parse(files.get(RULE_OBJECT) ?? '')).toMatchObject({
      kind: 'PrometheusRule',
      metadata: { labels: { release: 'monitoring' } },
      spec: { groups },
    });
    expect(files.get(DASHBOARDS[0])).toContain('https://wiki.example/kill');
  });

  test('refuses keys that it does not have, and values of another type', () => {
    expect(() => configOf({ selctor: 'x', severities: 'critical' })).toThrow(
      /^selctor: allowed are selector, .*\nseverities: found "critical"; the default is \{/,
    );
  });
});

describe('nothing is asked for that does not exist', () => {
  let check: (expr: string) => string[];
  beforeAll(async () => {
    check = await nameChecker();
  });

  test.each(rulesOf(RULES).map((rule) => ['alert' in rule ? rule.alert : rule.record, rule.expr]))(
    'by %s',
    (_, expr) => expect(check(expr ?? '')).toEqual([]),
  );

  test.each(DASHBOARDS)('by a panel or variable of %s', (path) => {
    const dashboard = readDashboard(path);
    const variables = dashboard.templating.list.filter(({ type }) => type === 'query').map(labelQueryOf);
    const expressions = [
      ...expressionsOf(dashboard).map(({ expr }) => expr),
      ...variables.map(({ selector, label }) => `sum by (${label}) (${selector})`),
    ];
    expect(expressions.flatMap(check)).toEqual([]);
  });

  test('and a name that is gone would be found', () => {
    expect(check('rate(killswitch_renewal_total[5m])')).toEqual(['killswitch_renewal_total does not exist']);
    expect(check('sum by (shop) (killswitch_ready{market="A"})')).toEqual([
      'killswitch_ready has no label market',
      'nothing has a label shop',
    ]);
    expect(check('killswitch_bot_state{state=~"stale|dead"} == 1')).toEqual([
      'killswitch_bot_state has no state "dead"',
    ]);
  });

  test('by the sentences of an alert, or a condition in them', async () => {
    const { labelsOf, metricNames } = await telemetryTables();
    for (const { alert, expr, annotations } of alerts) {
      const text = JSON.stringify(annotations);
      const metrics = text.match(/\bkillswitch_\w+/g) ?? [];
      expect(metrics.filter((name) => !metricNames.has(name))).toEqual([]);
      const said = [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label);
      expect(
        said.filter((label) => !labelsWith(expr, labelsOf).includes(label)),
        alert,
      ).toEqual([]);
      for (const [, label = '', value = ''] of text.matchAll(/\beq \$labels\.(\w+) \\"(\w+)\\"/g))
        expect(CLOSED_LABELS.flatMap((set) => (set.label === label ? set.values : []))).toContain(value);
    }
  });
});

describe('every alert', () => {
  const runbooks = read(RUNBOOKS);
  const sections = runbooks.split(/^(?=#{2,3} )/m).slice(1);

  test('has its section in the runbooks, and every section its alert', () => {
    const titled = sections.flatMap((section) => /^### (\w+)/.exec(section)?.[1] ?? []);
    expect(titled.toSorted()).toEqual(names.toSorted());
    for (const section of sections.filter((text) => text.startsWith('### '))) {
      expect(section).toContain('**By itself:** ');
      expect(section).toContain('**Do:** ');
    }
  });

  test('leads to its section, which stands under its severity, and says what is wrong', () => {
    const anchors = anchorsOf(runbooks);
    const [pages = '', others = ''] = runbooks.split('\n## Warnings and information\n');
    for (const { alert, labels, annotations } of alerts) {
      const { runbook_url: url, dashboard_url: dashboard, summary = '', description = '' } = annotations;
      expect(url).toBe(`${DEFAULTS.runbookUrl}#${alert.toLowerCase()}`);
      expect(anchors).toContain(alert.toLowerCase());
      expect(['critical', 'warning', 'info']).toContain(labels['severity']);
      expect(labels['severity'] === 'critical' ? pages : others, alert).toContain(`\n### ${alert}\n`);
      expect(dashboard).toMatch(/\/d\/killswitchd-(bot|fleet)/);
      expect(Math.min(summary.length, description.length), alert).toBeGreaterThan(19);
    }
  });

  test('is helped by panels that are there', () => {
    const titles = DASHBOARDS.flatMap((path) => readDashboard(path).panels.map(({ title }) => title));
    const named = [...runbooks.matchAll(/(?<![`=])"([A-Z][\w ]+)"/g)].map(([, title = '']) => title);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !titles.some((title) => title.startsWith(name)))).toEqual([]);
  });
});

describe('the example of', () => {
  test('Prometheus loads the rules beside it, and Grafana asks as often as is scraped', () => {
    const { rule_files, global } = parse(readDeployed(PROMETHEUS)) as {
      rule_files: string[];
      global: { scrape_interval: string };
    };
    expect(rule_files).toEqual([RULES.slice('prometheus/'.length)]);
    expect(parse(readDeployed(DATA_SOURCE))).toMatchObject({
      datasources: [{ type: 'prometheus', jsonData: { timeInterval: global.scrape_interval } }],
    });
  });

  test('Alertmanager names only alerts that there are, and labels that they have', async () => {
    type Matching = Readonly<Record<string, readonly string[]>>;
    const { labelsOf } = await telemetryTables();
    const { route, inhibit_rules } = parse(readDeployed(ALERTMANAGER)) as {
      route: { routes: Matching[]; group_by: string[] };
      inhibit_rules: Matching[];
    };
    expect(route.group_by.filter((label) => !TARGET_LABELS.includes(label))).toEqual([]);
    for (const { equal = [], ...matching } of [...route.routes, ...inhibit_rules]) {
      for (const branch of [matching['matchers'], matching['source_matchers'], matching['target_matchers']]
        .flatMap((all) => all ?? [])
        .flatMap(alternativesOf)) {
        const found = alerts.filter(({ alert }) => new RegExp(`^(${branch})$`).test(alert));
        expect(found, branch).not.toEqual([]);
        for (const { alert, expr } of found)
          expect(
            equal.filter((label) => !labelsWith(expr, labelsOf).includes(label)),
            alert,
          ).toEqual([]);
      }
    }
  });
});

/** `alertname=~"A|B"` and `alertname=~"X(A|B)"` as their branches; other matchers have none. */
function alternativesOf(matcher: string): string[] {
  const pattern = /^alertname=~?"(.+)"$/.exec(matcher)?.[1];
  if (pattern === undefined) return [];
  const [, head = '', inner] = /^(\w+)\(([\w|]+)\)$/.exec(pattern) ?? [];
  return inner === undefined ? pattern.split('|') : inner.split('|').map((tail) => head + tail);
}

/** The labels that an alert with this expression has. */
const labelsWith = (expr: string, labelsOf: ReadonlyMap<string, readonly string[]>): string[] => [
  ...namedIn(expr).selectors.flatMap(({ metric }) => labelsOf.get(metric) ?? ['market']),
  ...TARGET_LABELS,
];
