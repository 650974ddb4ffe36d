import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { alertsOf, deployed, RULES } from '../deploy/rules.ts';
import { DEATHS } from './alert-deaths.ts';
import { PAGES, TICKETS } from './alert-plays.ts';
import { QUIET_PLAYS } from './alert-silence.ts';
import { scrapesIn, scrapesUntil } from './alert-stage.ts';
import { inputSeries, STEP_SECONDS, TROUBLE, type World } from './alert-world.ts';

const PLAYS = [...PAGES, ...TICKETS, ...DEATHS];

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'killswitchd-rules-'));
  copyFileSync(deployed(RULES), join(directory, 'rules.yaml'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Expectation {
  /** Seconds after the beginning of the world. */
  readonly at: number;
  readonly query: string;
  readonly alerts: readonly string[];
}

/** What `promtool test rules` says of one world; nothing where every expectation holds. */
function judge(world: World, scrapes: number, expectations: readonly Expectation[]): string {
  const group = {
    interval: `${STEP_SECONDS}s`,
    input_series: inputSeries(world, scrapes),
    promql_expr_test: expectations.map(({ at, query, alerts }) => ({
      expr: query,
      eval_time: `${at}s`,
      exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    })),
  };
  // JSON is YAML.
  const file = join(directory, 'play.json');
  const interval = `${STEP_SECONDS}s`;
  writeFileSync(
    file,
    JSON.stringify({ rule_files: ['rules.yaml'], evaluation_interval: interval, tests: [group] }),
  );
  try {
    execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe', encoding: 'utf8' });
    return '';
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return `${stdout}${stderr}`;
  }
}

test('promtool finds nothing to improve in the rules', () => {
  const args = ['check', 'rules', '--lint=all', '--lint-fatal', deployed(RULES)];
  expect(execFileSync('promtool', args, { encoding: 'utf8' })).toContain('SUCCESS');
});

describe('somebody is told of', () => {
  const firing = 'max by (alertname) (ALERTS{alertstate="firing"})';

  test.each(PLAYS)('$name', ({ world, fires }) => {
    const expectations = Object.entries(fires).map(([seconds, alerts]) => ({
      at: TROUBLE * STEP_SECONDS + Number(seconds),
      query: firing,
      alerts: alerts.toSorted(),
    }));
    const last = Math.max(...expectations.map(({ at }) => at)) - TROUBLE * STEP_SECONDS;
    expect(judge(world, scrapesUntil(last), expectations)).toBe('');
  });

  test('everything that has an alert', () => {
    const played = new Set(PLAYS.flatMap(({ fires }) => Object.values(fires).flat()));
    expect([...played].toSorted()).toEqual(
      alertsOf(RULES)
        .map(({ alert }) => alert)
        .toSorted(),
    );
  });
});

describe('nobody is woken when', () => {
  // Whatever fired at any time.
  const fired = 'max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[3h]))';

  test.each(QUIET_PLAYS)('$name', ({ world, minutes }) => {
    const scrapes = scrapesIn(minutes);
    expect(judge(world, scrapes, [{ at: (scrapes - 1) * STEP_SECONDS, query: fired, alerts: [] }])).toBe('');
  });
});
