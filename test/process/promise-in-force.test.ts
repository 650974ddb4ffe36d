import { expect, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';
import { longestGapMs } from './simulated-exchange.ts';

const MARKETS = Array.from({ length: 60 }, (_, index) => ({
  market: `M${index}_USDT`,
  timeoutSeconds: 20,
}));

interface Seen {
  readonly market: string;
  readonly survivesSeconds: number;
  readonly renewEverySeconds: number;
}

const marketsOf = async (daemon: DaemonProcess): Promise<readonly Seen[]> =>
  (JSON.parse((await daemon.get('/api/v1/status')).body) as { markets: readonly Seen[] }).markets;

/** The last bound that the log promised since `from` lines of it, in seconds. */
const saidSince = (daemon: DaemonProcess, from: number) =>
  daemon
    .logged('promise')
    .slice(from)
    .map(({ msg }) => /^From now on an outage of the exchange shorter than ([\d.]+) s/.exec(msg)?.[1])
    .findLast((found) => found !== undefined);

test('the bounds and the budget of a stop are said for the answers that are measured, and again when these change', {
  timeout: 90_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  await exchange.addFaults({ kind: 'latency', ms: 10 });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS,
    config: { shutdown: { policy: 'delete', budgetSeconds: 5 } },
  });
  await daemon.ready(30_000);
  const atStart = daemon.logged('promise').length;
  // Sixty markets one after the other, at the 100 ms that are assumed.
  const stopWarnings = () =>
    daemon.logged('config-warning').filter(({ msg }) => msg.includes('shutdown.budgetSeconds'));
  expect(stopWarnings().map(({ msg }) => msg)).toEqual([
    expect.stringContaining('takes 6 s; 5 s leave timers armed'),
  ]);
  const inForce = async (fits: (least: number) => boolean) => {
    const least = Math.min(...(await marketsOf(daemon)).map(({ survivesSeconds }) => survivesSeconds));
    const said = Number(saidSince(daemon, 0));
    return fits(said) && Math.abs(said - least) < 0.01 * least ? said : null;
  };
  const quick = await eventually('the bound of quick answers', 20_000, () => inForce((said) => said > 0));

  const from = daemon.logged('promise').length;
  expect(from).toBeGreaterThanOrEqual(atStart);
  await exchange.clearFaults();
  await exchange.addFaults({ kind: 'latency', ms: 90 });
  const slow = await eventually('the bound of slow answers', 40_000, () =>
    saidSince(daemon, from) === undefined ? null : inForce((said) => said < quick - 1),
  );
  expect(slow).toBeGreaterThan(20 * 0.5);
  expect(stopWarnings().length).toBeGreaterThan(1);

  // What is promised is what is done: no market waits longer for its renewal than the period that the bound holds for.
  const [first] = await marketsOf(daemon);
  const fromMs = await exchange.nowMs();
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  const gap = longestGapMs(await exchange.events(), 'M0_USDT', fromMs, await exchange.nowMs());
  expect(gap).toBeLessThan((first?.renewEverySeconds ?? 0) * 1000 * 1.3);
});
