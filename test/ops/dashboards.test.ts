import { expect, type TestContext, test } from 'vitest';
import {
  DASHBOARDS,
  expressionOf,
  expressionsOf,
  filledIn,
  labelQueryOf,
  readDashboard,
} from '../deploy/dashboards.ts';
import { asker, controlsOf } from '../process/control.ts';
import { beginGuard } from '../process/harness.ts';
import { sleep } from '../process/program.ts';
import { type Prometheus, startPrometheus } from './monitoring.ts';

/** Expressions that show nothing in the play, and why it cannot make them. */
const NEVER = new Map([
  [
    'Events of the timers H',
    'the simulated exchange never sets another timer than asked for; the series is there with 0',
  ],
  ['annotation Starts', 'one process lives through the whole play; the series is there'],
]);
const MARKETS = [
  { market: 'AAA_USDT', timeoutSeconds: 5, bot: 'maker' },
  { market: 'BBB_USDT', timeoutSeconds: 10, bot: 'maker' },
  { market: 'CCC_USDT', timeoutSeconds: 60, bot: 'taker' },
];

/**
 * About two minutes in the life of a daemon with two bots, scraped every second: renewals, an outage that lets timers
 * lapse, a bot that falls silent and comes back, commands, a wrong configuration, a standstill, and a clean stop.
 */
async function playLife(context: TestContext): Promise<Prometheus> {
  const known = MARKETS.map(({ market }) => market).join(',');
  const { stage, exchange, daemon } = await beginGuard(context, {
    exchangeFlags: ['--markets', known],
    markets: MARKETS,
    config: {
      liveness: { mode: 'beat', ttlSeconds: 4, startupGraceSeconds: 10 },
      control: { listen: ['127.0.0.1:0'] },
      ping: { everySeconds: 1 },
    },
  });
  const [control = ''] = await controlsOf(daemon);
  const ask = asker(context, control, 2);
  const silent = new Set<string>();
  const beating = setInterval(() => {
    for (const bot of ['maker', 'taker'])
      if (!silent.has(bot)) void ask(`/v1/beat?bot=${bot}`, { body: { seq: Date.now() } }).catch(() => {});
  }, 500);
  context.onTestFinished(() => clearInterval(beating));
  const { port } = new URL(await daemon.web());
  const prometheus = await startPrometheus(context, stage.directory, (text) =>
    text.replaceAll('17477', port).replaceAll('5s', '1s').replaceAll('4s', '1s'),
  );
  await sleep(12_000);
  // A copy of an old beat, and a request that asks for nothing there is.
  await ask('/v1/beat?bot=maker', { body: { seq: 1 } });
  await ask('/v1/nothing');

  await exchange.addFaults({ kind: 'maintenance', forMs: 22_000 });
  await sleep(32_000);
  silent.add('maker');
  await sleep(18_000);
  silent.clear();
  await sleep(5000);

  await ask('/v1/pause', { body: { markets: ['AAA_USDT'], forSeconds: 60 } });
  await ask('/v1/trip', { body: { markets: ['BBB_USDT'] } });
  await sleep(3000);
  await ask('/v1/arm', { body: { markets: ['AAA_USDT', 'BBB_USDT'] } });
  // The exchange does not know this market.
  const unknown = { market: 'DDD_USDT', timeoutSeconds: 60, bot: 'taker' };
  daemon.configure({ markets: [...MARKETS, unknown] });
  await daemon.reloadBySignal('reload-applied');
  await sleep(2500);
  await ask('/v1/arm', { body: { markets: ['DDD_USDT'], waitSeconds: 1 } });
  daemon.configure({ markets: 7 });
  await daemon.reloadBySignal('reload-rejected');
  await sleep(3000);
  daemon.signal('SIGSTOP');
  await sleep(1500);
  daemon.signal('SIGCONT');
  await sleep(8000);
  clearInterval(beating);
  daemon.signal('SIGTERM');
  await daemon.exit();
  await sleep(6000);
  return prometheus;
}

test('after a life of a daemon every panel has something to show, a dead one is not green, and no alert has a hole', {
  timeout: 240_000,
}, async (context) => {
  const from = Date.now() / 1000;
  const prometheus = await playLife(context);
  const to = Date.now() / 1000;
  for (const path of DASHBOARDS) {
    const dashboard = readDashboard(path);
    // Everything is chosen, found in its order as Grafana does.
    const values = new Map<string, string>();
    for (const variable of dashboard.templating.list.filter(({ type }) => type === 'query')) {
      const { selector, label } = labelQueryOf(variable);
      const found = await prometheus.labelValues(label, filledIn(selector, values));
      expect(found, `${variable.name}: ${variable.definition}`).not.toEqual([]);
      values.set(variable.name, variable.allValue ?? found.join('|'));
    }
    const expressions = expressionsOf(dashboard);
    const empty: string[] = [];
    for (const { where, expr } of expressions) {
      const results = await prometheus.range(filledIn(expr, values), from, to, 1);
      if (!results.some((result) => result.values.some(([, value]) => value !== 'NaN'))) empty.push(where);
    }
    expect(empty, path).toEqual(expressions.map(({ where }) => where).filter((where) => NEVER.has(where)));
    if (path !== DASHBOARDS[0]) continue;
    const first = filledIn(expressionOf(path, 'Is every market protected?'), values);
    const [result] = await prometheus.range(first, to, to, 1);
    expect(result?.values.map(([, value]) => value)).toEqual(['-1']);
  }
  const results = await prometheus.range('ALERTS', from, to, 1);
  const fired = results.map(({ metric }) => metric['alertname']);
  expect(fired).toEqual(
    expect.arrayContaining(['KillswitchLapsed', 'KillswitchBotSilent', 'KillswitchTimerRunningOut']),
  );
  const alerts = await prometheus.alerts();
  expect(alerts.length).toBeGreaterThan(0);
  for (const { annotations } of alerts)
    expect(JSON.stringify(annotations)).not.toMatch(/no value|error|\{\{|%!/);
});
