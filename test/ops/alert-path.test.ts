import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { readDeployed } from '../deploy/rules.ts';
import { stageFor } from '../process/harness.ts';
import { eventually } from '../process/program.ts';
import { startAlertmanager, startPrometheus, startReceiver } from './monitoring.ts';

/** What docs/runbooks.md promises for the death of a daemon. */
const PAGED_WITHIN_MS = 60_000;

test('a daemon is killed, and somebody is paged within the time that the runbooks state', {
  timeout: 180_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'AAA_USDT', timeoutSeconds: 20 }],
  });
  await daemon.ready();
  const receiver = await startReceiver(context);
  const alertmanager = await startAlertmanager(context, stage.directory, receiver.url);
  const { host } = new URL(await daemon.web());
  const prometheus = await startPrometheus(context, stage.directory, (text) =>
    text.replace('127.0.0.1:17477', host).replace('127.0.0.1:9093', alertmanager),
  );
  await eventually('a scrape', 20_000, async () =>
    (await prometheus.query('killswitch_ready == 1 and on (job) (up == 1)')).length > 0 ? true : null,
  );

  const killedMs = performance.now();
  daemon.signal('SIGKILL');
  const page = await eventually('a page', 120_000, () => receiver.messages[0] ?? null);
  expect(page.atMs - killedMs).toBeLessThan(PAGED_WITHIN_MS);
  expect(page).toMatchObject({ path: '/page', status: 'firing' });
  expect(page.alerts.map(({ labels }) => labels)).toEqual([
    { alertname: 'KillswitchDown', severity: 'page', job: 'killswitchd', account: 'main', instance: host },
  ]);
  const [alert] = page.alerts;
  expect(alert?.annotations).toEqual({
    summary: `killswitchd at ${host} does not answer.`,
    description: expect.stringContaining('cancels the orders') as string,
    runbook_url: 'https://killswitchd.example/docs/runbooks.md#killswitchdown',
  });

  // The timer of the dead daemon runs out, and the market is named.
  const unarmed = await eventually(
    'the second page',
    150_000,
    () =>
      receiver.messages
        .flatMap(({ alerts }) => alerts)
        .find(({ labels }) => labels['alertname'] === 'KillswitchUnarmed') ?? null,
  );
  expect(unarmed.labels).toMatchObject({ market: 'AAA_USDT', account: 'main' });
  expect(unarmed.annotations['description']).toContain('its time was up at 20');
  expect(readDeployed('../docs/runbooks.md')).toMatch(/paged\s+within\s+a\s+minute/);
});

test('nothing of what the daemon exposes displeases promtool', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'AAA_USDT', timeoutSeconds: 5 }],
  });
  await daemon.ready();
  const { body } = await daemon.get('/metrics');
  expect(execFileSync('promtool', ['check', 'metrics'], { input: body, encoding: 'utf8' })).toBe('');
});
