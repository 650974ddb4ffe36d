import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { readDeployed } from '../deploy/rules.ts';
import { guard, stageFor } from '../process/harness.ts';
import { eventually } from '../process/program.ts';
import { startAlertmanager, startPrometheus, startReceiver } from './monitoring.ts';

/** What docs/runbooks.md promises for the death of a daemon. */
const PAGED_WITHIN_MS = 60_000;

test('a daemon whose metrics promtool likes is killed, and somebody is paged within the time that the runbooks state', {
  timeout: 240_000,
}, async (context) => {
  const guarding = { exchangeFlags: [], markets: ['AAA_USDT'], timeoutSeconds: 20 };
  const { stage, daemon } = await guard(context, guarding);
  const { body } = await daemon.get('/metrics');
  expect(execFileSync('promtool', ['check', 'metrics'], { input: body, encoding: 'utf8' })).toBe('');
  const { revision } = /killswitch_build_info\{.*revision="(?<revision>[^"]*)"/.exec(body)?.groups ?? {};
  expect(revision).toMatch(/^([0-9a-f]{40}|unknown)$/);
  const receiver = await startReceiver(context);
  const alertmanager = await startAlertmanager(context, stage.directory, receiver.url);
  const { host } = new URL(await daemon.web());
  const prometheus = await startPrometheus(context, stage.directory, (text) =>
    text.replace('127.0.0.1:17477', host).replace('127.0.0.1:9093', alertmanager),
  );
  const seen = () => prometheus.query('killswitch_ready == 1 and on (job) (up == 1)');
  await eventually('a scrape', 20_000, async () => (await seen()).length > 0);

  const killedMs = performance.now();
  daemon.signal('SIGKILL');
  const pages = () => receiver.messages.filter(({ path }) => path === '/page');
  const page = await eventually('a page', 120_000, () => pages()[0]);
  expect(page.atMs - killedMs).toBeLessThan(PAGED_WITHIN_MS);
  expect(page).toMatchObject({ path: '/page', status: 'firing' });
  const labels = { severity: 'critical', job: 'killswitchd', account: 'main', instance: host };
  expect(page.alerts.map((one) => one.labels)).toEqual([{ alertname: 'KillswitchDown', ...labels }]);
  const [alert] = page.alerts;
  expect(alert?.annotations).toEqual({
    summary: `killswitchd at ${host} does not answer.`,
    description: expect.stringContaining('cancels the orders') as string,
    runbook_url: 'https://killswitchd.example/docs/runbooks.md#killswitchdown',
    dashboard_url: 'https://grafana.example/d/killswitchd-fleet',
  });

  // The timer of the dead daemon runs out, and the market is named.
  const sent = () => receiver.messages.flatMap(({ alerts }) => alerts);
  const unarmed = await eventually('the second page', 150_000, () =>
    sent().find((one) => one.labels['alertname'] === 'KillswitchUnarmed'),
  );
  expect(unarmed.labels).toMatchObject({ market: 'AAA_USDT', account: 'main' });
  expect(unarmed.annotations['description']).toContain('its time was up at 20');
  // That alerting works is said to somebody else; Prometheus sends again a minute after it found no Alertmanager yet.
  const others = () => receiver.messages.filter(({ path }) => path !== '/page');
  await eventually('the watchdog', 90_000, () => others()[0]);
  expect(new Set(others().map(({ path }) => path))).toEqual(new Set(['/watchdog']));
  expect(readDeployed('../docs/runbooks.md')).toMatch(/paged\s+within\s+a\s+minute/);
});

test('a refused key holds back what follows from it, of its own daemon only', async (context) => {
  const stage = stageFor(context);
  const receiver = await startReceiver(context);
  const url = `http://${await startAlertmanager(context, stage.directory, receiver.url)}/api/v2/alerts`;
  const alert = (alertname: string, account: string, more: Readonly<Record<string, string>> = {}) => ({
    labels: { alertname, severity: 'critical', job: 'killswitchd', account, ...more },
  });
  const market = { market: 'BTC_USDT' };
  const body = JSON.stringify([
    alert('KillswitchKeyRefused', 'main', { instance: 'a' }),
    alert('KillswitchTimerRunningOut', 'main', { instance: 'a', ...market }),
    alert('KillswitchUnarmed', 'main', market),
    alert('KillswitchLapsed', 'main', { instance: 'a', ...market }),
    alert('KillswitchLapsed', 'main', { instance: 'b', ...market }),
    alert('KillswitchUnarmed', 'other', market),
  ]);
  const headers = { 'content-type': 'application/json' };
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200);
  const told = await eventually('the accounts to be told of', 30_000, () => {
    const pages = receiver.messages.flatMap(({ alerts }) => alerts.map(({ labels }) => labels));
    return new Set(pages.map(({ account }) => account)).size === 2 ? pages : null;
  });
  expect(told.map(({ account, alertname }) => `${account} ${alertname}`).toSorted()).toEqual([
    'main KillswitchKeyRefused',
    'main KillswitchLapsed',
    'main KillswitchUnarmed',
    'other KillswitchUnarmed',
  ]);
});
