import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { startControl } from '../../src/operator/control.ts';
import type { ControlSources } from '../../src/operator/control-sources.ts';
import type { ListenAddress } from '../../src/ports.ts';
import { folderFor } from '../liveness/started.ts';
import { asker as askerOf } from '../process/control.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

export const clock = createSystemClock();
export const TCP = '127.0.0.1:0';

/** A directory that is removed after the test. */
export const makeFolder = () => folderFor({ onTestFinished });

/**
 * A daemon with the bots `main` (BTC_USDT) and `maker` (ETH_USDT) in which everything asked for happens at once. It
 * writes down every call that could change something, every refusal, and every command with who sent it and why.
 */
export function createSpy(changes: Partial<ControlSources> = {}) {
  const calls: unknown[][] = [];
  const refused: string[] = [];
  const commands: Parameters<ControlSources['onCommand']>[0][] = [];
  const noted =
    <Given extends unknown[], Answer>(name: string, answer: (...given: Given) => Answer) =>
    (...given: Given): Answer => {
      calls.push([name, ...given]);
      return answer(...given);
    };
  const markets = [sampleMarket(), sampleMarket({ market: 'ETH_USDT', bot: 'maker', state: 'arming' })];
  const done = (market: string) => ({ market, state: 'done', says: `${market} is well.` }) as const;
  const snapshot = changes.snapshot ?? (() => sampleSnapshot({ markets }));
  const sources: ControlSources = {
    clock,
    snapshot,
    view() {
      const { phase, markets: all } = snapshot();
      return { phase, marketsOf: (name) => all.filter(({ bot, leaving }) => bot === name && !leaving) };
    },
    status: async () => Buffer.from('{"schemaVersion":1,"markets":[]}'),
    markets: () => ['BTC_USDT', 'ETH_USDT'],
    elsewhere: (market) => (market === 'SOL_USDT' ? { index: 1, count: 3 } : null),
    bots: () => ['main', 'maker'],
    ttlMs: () => 15_000,
    hear: noted('hear', () => ({ counted: true })),
    afterGoodbye: noted('afterGoodbye', async () => [done('BTC_USDT')]),
    operate: noted('operate', async (command) => (command.markets ?? ['BTC_USDT', 'ETH_USDT']).map(done)),
    cancelled: () => ['GONE_USDT'],
    acknowledge: noted('acknowledge', (markets) => ({ acknowledged: markets ?? ['BTC_USDT'], notYet: [] })),
    reload: noted('reload', async () => ({ kind: 'unchanged' as const })),
    logLevel: () => 'info',
    setLogLevel: noted('setLogLevel', () => {}),
    hide: (text) => text,
    onRefused: (reason) => void refused.push(reason),
    onCommand: (command) => void commands.push(command),
    ...changes,
  };
  return { sources, calls, refused, commands };
}

/** `unix:/PATH` or `HOST:PORT` as the configuration reads it. */
export function addressOf(text: string): ListenAddress {
  if (text.startsWith('unix:')) return { kind: 'unix', text, path: text.slice('unix:'.length) };
  const [, host = '', port] = /^\[?(.*?)\]?:(\d+)$/.exec(text) ?? [];
  return { kind: 'tcp', text, host, port: Number(port) };
}

/** Starts listeners that are closed after the test. */
export async function start(
  spy: ReturnType<typeof createSpy>,
  listen: readonly string[] = [`unix:${join(makeFolder(), 'control.sock')}`],
  token: string | null = null,
  access: 'owner' | 'group' = 'owner',
): ReturnType<typeof startControl> {
  const options = { access, token: () => token, sources: spy.sources };
  const control = await startControl({ ...options, listen: listen.map(addressOf) });
  onTestFinished(control.close);
  return control;
}

/** A daemon that writes down what it was asked, its listener, and who asks it; on a Unix socket unless told otherwise. */
export async function open(
  changes: Partial<ControlSources> = {},
  listen?: string,
  token: string | null = null,
) {
  const spy = createSpy(changes);
  const { addresses, close } = await start(spy, listen === undefined ? undefined : [listen], token);
  const address = addresses[0]?.replace('0.0.0.0', '127.0.0.1');
  return { ...spy, address, ask: asker(address), close };
}

/** Asks the listener at this address over one connection, with POST unless told otherwise. */
export const asker = (address: string | undefined) => askerOf({ onTestFinished }, address ?? '');

/** A bare connection to the listener at this address. */
export function dial(address: string | undefined): Socket {
  const socket =
    address?.startsWith('unix:') === true
      ? connect({ path: address.slice('unix:'.length) })
      : connect(Number(new URL(address ?? '').port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  return socket;
}

/** Resolves with everything that comes back until the other side ends the connection. */
export function heardOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let heard = '';
    socket.on('data', (data) => {
      heard += data.toString('latin1');
    });
    socket.once('close', () => resolve(heard));
  });
}

/** Writes bytes, and resolves with what is heard. */
export function say(address: string | undefined, bytes: string | Uint8Array, end = false): Promise<string> {
  const socket = dial(address);
  socket.write(bytes);
  if (end) socket.end();
  return heardOf(socket);
}
