import { beforeAll, describe, expect, test } from 'vitest';
import {
  DASHBOARDS,
  type Dashboard,
  expressionOf,
  expressionsOf,
  filledIn,
  labelQueryOf,
  readDashboard,
} from '../deploy/dashboards.ts';
import { type Played, playForDashboards } from './dashboard-play.ts';

/** Expressions that show nothing in the play, and why it cannot make them. */
const NEVER = new Map([
  [
    'Events of the timers H',
    'the simulated exchange never sets another timer than asked for; the series is there with 0',
  ],
  ['annotation Starts', 'one process lives through the whole play; the series is there'],
]);

/** The values of the variables with everything chosen, found in their order as Grafana does. */
async function chooseAll({ templating }: Dashboard, { prometheus }: Played): Promise<Map<string, string>> {
  const values = new Map<string, string>();
  for (const variable of templating.list.filter(({ type }) => type === 'query')) {
    const { selector, label } = labelQueryOf(variable);
    const found = await prometheus.labelValues(label, filledIn(selector, values));
    expect(found, `${variable.name}: ${variable.definition}`).not.toEqual([]);
    values.set(variable.name, variable.allValue ?? found.join('|'));
  }
  return values;
}

describe('Grafana', () => {
  let played: Played;
  let over: () => Promise<void>;
  beforeAll(async () => {
    const endings: (() => unknown)[] = [];
    const context = { onTestFinished: (end: () => unknown) => void endings.push(end) };
    over = async () => {
      for (const end of endings.toReversed()) await end();
    };
    played = await playForDashboards(context as never);
    return over;
  }, 240_000);

  test.each(DASHBOARDS)('%s has something to show in every panel, from Prometheus itself', async (path) => {
    const dashboard = readDashboard(path);
    const values = await chooseAll(dashboard, played);
    const { from, to, prometheus } = played;
    const empty: string[] = [];
    const expressions = expressionsOf(dashboard);
    for (const { where, expr } of expressions) {
      const results = await prometheus.range(filledIn(expr, values), from, to, 1);
      const shown = results.some((result) => result.values.some(([, value]) => value !== 'NaN'));
      if (!shown) empty.push(where);
    }
    const never = expressions.map(({ where }) => where).filter((where) => NEVER.has(where));
    expect(empty).toEqual(never);
  });

  test('a dead daemon does not turn the first panels green', async () => {
    const dashboard = readDashboard('grafana/dashboards/killswitchd-bot.json');
    const values = await chooseAll(dashboard, played);
    const expr = filledIn(expressionOf(DASHBOARDS[0], 'Is every market protected?'), values);
    const [result] = await played.prometheus.range(expr, played.to, played.to, 1);
    expect(result?.values.map(([, value]) => value)).toEqual(['-1']);
  });

  test('the alerts of the play have sentences without holes', async () => {
    const results = await played.prometheus.range('ALERTS', played.from, played.to, 1);
    const names = new Set(results.map(({ metric }) => metric['alertname']));
    for (const name of ['KillswitchLapsed', 'KillswitchBotSilent', 'KillswitchTimerRunningOut']) {
      expect(names).toContain(name);
    }
    const alerts = await played.prometheus.alerts();
    expect(alerts.length).toBeGreaterThan(0);
    for (const { annotations } of alerts) {
      expect(JSON.stringify(annotations)).not.toMatch(/no value|error|\{\{|%!/);
    }
  });
});
