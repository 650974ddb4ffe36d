import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { alertsOf, deployed, RULES } from '../deploy/rules.ts';
import { PLAYS, QUIET_PLAYS } from './alert-plays.ts';
import { after, alertsNamed, judge, together } from './alert-world.ts';

test('promtool finds nothing to improve in the rules', () => {
  const args = ['check', 'rules', '--lint=all', '--lint-fatal', deployed(RULES)];
  expect(execFileSync('promtool', args, { encoding: 'utf8' })).toContain('SUCCESS');
});

const FIRING = 'ALERTS{alertstate="firing", alertname!="KillswitchWatchdog"}';

describe('somebody is told of', () => {
  test.each(PLAYS)('$name', ({ world, fires }) => {
    const expectations = Object.entries(fires).map(([seconds, alerts]) => ({
      at: after(Number(seconds)),
      query: `max by (alertname) (${FIRING})`,
      samples: alertsNamed(alerts),
    }));
    expect(judge(world, expectations)).toBe('');
  });

  test('everything that has an alert', () => {
    const played = PLAYS.flatMap(({ fires }) => Object.values(fires).flat());
    // The last one always fires, and every play leaves it out.
    expect(new Set([...played, 'KillswitchWatchdog'])).toEqual(
      new Set(alertsOf(RULES).map(({ alert }) => alert)),
    );
  });
});

test.each(Object.entries(QUIET_PLAYS))('nobody is woken when %s', (_name, [minutes, ...worlds]) => {
  const fired = `max by (alertname) (max_over_time(${FIRING}[3h]))`;
  expect(judge(together(...worlds), [{ at: minutes * 60, query: fired, samples: [] }])).toBe('');
});
