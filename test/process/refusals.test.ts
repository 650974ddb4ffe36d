import { writeFileSync } from 'node:fs';
import { describe, expect, type TestContext, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { type Gateway, type GatewayAnswer, openGateway, REFUSALS } from './gateway.ts';
import { type Stage, stageFor } from './harness.ts';
import { eventually, said, sleep } from './program.ts';
import { ofKind, type RunningExchange, renewalsOf } from './simulated-exchange.ts';

interface Play {
  readonly exchange: RunningExchange;
  readonly gateways: readonly Gateway[];
  readonly daemon: DaemonProcess;
  readonly markets: readonly string[];
}

interface Setting {
  readonly addresses?: 1 | 2;
  readonly timeouts?: readonly number[];
  readonly config?: Readonly<Record<string, unknown>>;
}

/** An armed daemon before an exchange that is reached through one gateway for each address. */
async function play(context: TestContext, stage: Stage, setting: Setting = {}): Promise<Play> {
  const { addresses = 1, timeouts = [15, 30, 60], config = {} } = setting;
  const exchange = await stage.exchange();
  const gateways = await Promise.all(
    Array.from({ length: addresses }, () => openGateway(context, exchange.url)),
  );
  const configured = timeouts.flatMap((timeoutSeconds) =>
    ['AAA', 'BBB'].map((base) => ({ market: `${base}${timeoutSeconds}_USDT`, timeoutSeconds })),
  );
  const baseUrls = gateways.map(({ url }) => url);
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: configured,
    config: {
      exchange: { baseUrls, ...(addresses > 1 ? { sameAccount: true } : {}) },
      ...config,
    },
  });
  await daemon.ready(30_000);
  return { exchange, gateways, daemon, markets: configured.map(({ market }) => market) };
}

/** Answers everything with a refusal for `forMs`, and waits until every timer was renewed after that. */
async function refuseFor(
  { exchange, gateways, daemon, markets }: Play,
  answer: GatewayAnswer,
  forMs: number,
) {
  for (const gateway of gateways) gateway.answerWith(answer);
  await sleep(forMs);
  for (const gateway of gateways) gateway.answerWith(null);
  const sinceMs = await exchange.nowMs();
  await eventually(`every timer renewed\n${said(daemon)}`, 15_000, async () => {
    const events = await exchange.events();
    return markets.every((market) => renewalsOf(events, market).some((atMs) => atMs > sinceMs)) ? true : null;
  });
}

async function firedOf({ exchange }: Play): Promise<string[]> {
  return ofKind(await exchange.events(), 'timer-fired').map(({ market }) => market);
}

const REFUSED = ['a page with 403', 'the refusal of a key', 'the refusal of a market'] as const;

describe.concurrent('a gateway that refuses everything and is well again', { timeout: 60_000 }, () => {
  test('for 5 s, in any words, fires nothing', async (context) => {
    const stage = stageFor(context);
    const running = await play(context, stage, { timeouts: [15, 30] });
    for (const words of REFUSED) {
      await refuseFor(running, REFUSALS[words], 5000);
      expect(await firedOf(running), words).toEqual([]);
    }
  });

  test('costs nothing at all where another address of the account is well', async (context) => {
    const stage = stageFor(context);
    const running = await play(context, stage, { addresses: 2, timeouts: [5, 10] });
    running.gateways[0]?.answerWith(REFUSALS['the refusal of a key']);
    await sleep(12_000);
    expect(await firedOf(running)).toEqual([]);
  });

  test('for 1 s at a stop does not end it: every timer is deleted within the budget', async (context) => {
    const stage = stageFor(context);
    const running = await play(context, stage, { config: { shutdown: { budgetSeconds: 8 } } });
    const { exchange, gateways, daemon, markets } = running;
    gateways[0]?.answerWith(REFUSALS['the refusal of a key']);
    daemon.signal('SIGTERM');
    await sleep(1000);
    gateways[0]?.answerWith(null);
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 0 });
    const events = await exchange.events();
    const deleted = ofKind(events, 'timer-deleted').map(({ market }) => market);
    expect(deleted.toSorted()).toEqual(markets.toSorted());
    expect(ofKind(events, 'timer-fired')).toEqual([]);
  });
});

describe.concurrent('a key that is refused', { timeout: 60_000 }, () => {
  test('while its file holds another one is read again every second, in time for the timers', async (context) => {
    const stage = stageFor(context);
    const running = await play(context, stage, { timeouts: [30] });
    const { daemon, gateways } = running;
    gateways[0]?.answerWith(REFUSALS['the refusal of a key']);
    await eventually('a refused key', 15_000, () => daemon.logged('unauthorised')[0] ?? null);
    await sleep(2000);
    const writtenMs = Date.now();
    writeFileSync(daemon.secretFile, 'the-next-secret\n');
    await eventually('the new secret', 5000, () => daemon.logged('secrets-changed')[0] ?? null);
    expect(Date.now() - writtenMs).toBeLessThan(2500);
  });
});
