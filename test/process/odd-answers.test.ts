import { describe, expect, test } from 'vitest';
import { guard, stageFor } from './harness.ts';
import { serve } from './http-server.ts';
import { eventually, sleep } from './program.ts';
import { longestGapDuring, ofKind } from './simulated-exchange.ts';

const marketsOf = (count: number) => Array.from({ length: count }, (_, index) => `M${index}_USDT`);

/** What a gateway with a wrong clock says that the time is. */
const WRONG_TIMES = { behind: () => Date.now() - 30_000, anywhere: () => Math.random() * 4e12 };

describe.concurrent('where nonces have a window, a gateway that gives every answer a wrong Date fires no timer: its clock is', () => {
  test.for(Object.entries(WRONG_TIMES))('%s', { timeout: 60_000 }, async ([, time], context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const gateway = await serve(context, ({ method, path, headers, body }, response) => {
      const { host: _host, connection: _connection, ...others } = headers as Record<string, string>;
      const init = { method, headers: others, ...(method === 'POST' && { body }) };
      void fetch(`${exchange.url}${path}`, init).then(async (answer) => {
        const date = new Date(time()).toUTCString();
        response.writeHead(answer.status, { 'content-type': 'application/json', date });
        response.end(await answer.text());
      });
    });
    const markets = marketsOf(2).map((market) => ({ market, timeoutSeconds: 5 }));
    await stage.daemon({ exchange: gateway, markets, config: { exchange: { nonce: 'window' } } });
    for (const { market } of markets)
      await exchange.event('timer-armed', 15_000, (event) => event.market === market);
    await sleep(10_000);
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
    expect(ofKind(await exchange.events(), 'request-refused').length).toBeLessThan(8);
  });
});

test('the bounds and the budget of a stop are said for the answers that are measured, and again when these change', {
  timeout: 90_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, {
    markets: marketsOf(60),
    timeoutSeconds: 20,
    faults: [{ kind: 'latency', ms: 10 }],
    config: { shutdown: { policy: 'delete', budgetSeconds: 5 } },
  });
  // Sixty markets one after the other, at the 100 ms that are assumed.
  const stopWarnings = () =>
    daemon.logged('config-warning').filter(({ msg }) => msg.includes('shutdown.budgetSeconds'));
  expect(stopWarnings().map(({ msg }) => msg)).toEqual([
    expect.stringContaining('takes 6 s; 5 s leave timers armed'),
  ]);
  /** The bound that the log promised last, in seconds, once the status has it as well. */
  const inForce = async () => {
    const bounds = daemon
      .logged('promise')
      .flatMap(
        ({ msg }) => /^From now on an outage of the exchange shorter than ([\d.]+) s/.exec(msg)?.[1] ?? [],
      );
    const said = Number(bounds.at(-1));
    const least = Math.min(...(await daemon.markets()).map(({ survivesSeconds }) => survivesSeconds));
    return Math.abs(said - least) < 0.01 * least ? said : null;
  };
  const quick = await eventually('the bound of quick answers', 20_000, inForce);
  await exchange.clearFaults();
  await exchange.addFaults({ kind: 'latency', ms: 90 });
  const slow = await eventually('the bound of slow answers', 40_000, async () => {
    const said = await inForce();
    return said !== null && said < quick - 1 ? said : null;
  });
  expect(slow).toBeGreaterThan(20 * 0.5);
  expect(stopWarnings().length).toBeGreaterThan(1);

  // What is promised is what is done: no market waits longer for its renewal than the period that the bound holds for.
  const [first] = await daemon.markets();
  const gapMs = await longestGapDuring(exchange, ['M0_USDT'], () => sleep(7000));
  expect(gapMs).toBeLessThan((first?.renewEverySeconds ?? 0) * 1000 * 1.3);
});
