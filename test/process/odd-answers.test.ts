import { describe, expect, test } from 'vitest';
import { beginGuard, guard, stageFor } from './harness.ts';
import { serve } from './http-server.ts';
import { eventually, sleep } from './program.ts';
import { longestGapDuring, ofKind } from './simulated-exchange.ts';

const marketsOf = (count: number) => Array.from({ length: count }, (_, index) => `M${index}_USDT`);

// That no timer is lost then, and that a stop deletes, is played in `test/core/cadence.test.ts`.
test.concurrent('where the exchange answers after 3.5 s, from the start, 200 timers are armed by one request each, or little more', {
  timeout: 60_000,
}, async (context) => {
  const markets = marketsOf(200);
  const { exchange } = await beginGuard(context, {
    markets,
    timeoutSeconds: 60,
    faults: [{ kind: 'latency', ms: 3500, when: 'after', match: { operation: 'kill-switch' } }],
    config: { exchange: { nonce: 'window' } },
  });
  const events = await eventually('all armed', 60_000, async () => {
    const known = await exchange.events();
    return ofKind(known, 'timer-armed').length === markets.length ? known : null;
  });
  expect(ofKind(events, 'timer-updated').length).toBeLessThan(100);
});

test.concurrent('answers out of a cache keep no timer in sight that has fired, and are told from renewals once it is gone', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, { markets: marketsOf(2), timeoutSeconds: 5 });
  await exchange.addFaults({ kind: 'cache', match: { operation: 'kill-switch' } });
  await eventually(
    'both timers fired',
    20_000,
    async () => ofKind(await exchange.events(), 'timer-fired').length === 2,
  );
  await sleep(1000);
  for (let look = 0; look < 6; look += 1) {
    const { status, body } = await daemon.get('/readyz?verbose');
    expect(status, body).toBe(503);
    expect((await daemon.get('/livez')).status).toBe(200);
    await sleep(500);
  }
  expect(daemon.marketsLogged('overdue')).toEqual(['M0_USDT', 'M1_USDT']);
  expect(daemon.logged('attempt-failed')[0]?.msg).toContain('the exchange repeats an earlier answer');
  await exchange.clearFaults();
  await daemon.ready();
  // The page may be quicker than the log.
  await eventually('two lapses in the log', 5000, () => daemon.logged('lapsed')[1]);
  expect(daemon.marketsLogged('lapsed')).toEqual(['M0_USDT', 'M1_USDT']);
});

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

test.concurrent.for(['increasing', 'window'])(
  'a market that is never answered keeps the only connection from no other one (nonce: %s)',
  {
    timeout: 60_000,
  },
  async (nonce, context) => {
    const { exchange } = await guard(context, {
      markets: ['SICK_USDT', 'WELL_USDT'],
      timeoutSeconds: 5,
      config: { exchange: { nonce, connections: 1 } },
    });
    await exchange.addFaults({
      kind: 'hang',
      mode: 'drop',
      match: { operation: 'kill-switch', market: 'SICK_USDT' },
    });
    expect(await longestGapDuring(exchange, ['WELL_USDT'], () => sleep(12_000))).toBeLessThanOrEqual(2500);
  },
);

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
