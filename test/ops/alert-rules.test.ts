import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { alertsOf, deployed, RULES } from '../deploy/rules.ts';
import { DEATHS } from './alert-deaths.ts';
import { PAGES, TICKETS } from './alert-plays.ts';
import { QUIET_PLAYS } from './alert-silence.ts';
import { scrapesIn, scrapesUntil } from './alert-stage.ts';
import { STEP_SECONDS, TROUBLE } from './alert-world.ts';
import { judge } from './promtool.ts';

const PLAYS = [...PAGES, ...TICKETS, ...DEATHS];

test('promtool finds nothing to improve in the rules', () => {
  const args = ['check', 'rules', '--lint=all', '--lint-fatal', deployed(RULES)];
  expect(execFileSync('promtool', args, { encoding: 'utf8' })).toContain('SUCCESS');
});

describe('somebody is told of', () => {
  const firing = 'max by (alertname) (ALERTS{alertstate="firing", alertname!="KillswitchWatchdog"})';

  test.each(PLAYS)('$name', ({ world, fires }) => {
    const expectations = Object.entries(fires).map(([seconds, alerts]) => ({
      at: TROUBLE * STEP_SECONDS + Number(seconds),
      query: firing,
      samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    }));
    const last = Math.max(...expectations.map(({ at }) => at)) - TROUBLE * STEP_SECONDS;
    expect(judge(world, scrapesUntil(last), expectations)).toBe('');
  });

  test('everything that has an alert', () => {
    const played = new Set(PLAYS.flatMap(({ fires }) => Object.values(fires).flat()));
    // It always fires, and every play leaves it out.
    played.add('KillswitchWatchdog');
    expect([...played].toSorted()).toEqual(
      alertsOf(RULES)
        .map(({ alert }) => alert)
        .toSorted(),
    );
  });
});

describe('nobody is woken when', () => {
  // Whatever fired at any time.
  const fired =
    'max by (alertname) (max_over_time(ALERTS{alertstate="firing", alertname!="KillswitchWatchdog"}[3h]))';

  test.each(QUIET_PLAYS)('$name', ({ world, minutes }) => {
    const scrapes = scrapesIn(minutes);
    expect(judge(world, scrapes, [{ at: (scrapes - 1) * STEP_SECONDS, query: fired, samples: [] }])).toBe('');
  });
});
