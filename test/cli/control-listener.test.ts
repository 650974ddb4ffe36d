import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { OperatorCommand, Progress } from '../../src/core/events.ts';
import { type Control, startControl } from '../../src/operator/control.ts';
import type { ControlSources, LogLevel, ReloadReport } from '../../src/operator/control-sources.ts';
import { addressOf } from '../operator/control-fixture.ts';
import { sampleSnapshot } from '../operator/sample-snapshot.ts';
import { statusOf } from './sample-status.ts';
import { fileWith, folder, run } from './stage.ts';

const TOKEN = 'a-token-of-some-length';
const open: Control[] = [];
afterEach(async () => {
  for (const control of open.splice(0)) await control.close();
});

/** The real control listener before a daemon that does whatever it is told. */
async function listener(report: ReloadReport = { kind: 'unchanged' }, state: Progress['state'] = 'done') {
  const commands: { readonly command: OperatorCommand; readonly waitMs: number }[] = [];
  const levels: { readonly level: LogLevel; readonly forMs: number | null }[] = [];
  const sources: ControlSources = {
    onCommand: () => {},
    clock: createSystemClock(),
    version: '1.2.3',
    snapshot: () => sampleSnapshot({ ready: false, notReady: ['BTC_USDT is not confirmed armed (arming)'] }),
    revision: () => 0,
    status: async () => [JSON.stringify(statusOf([{ market: 'BTC_USDT' }]))],
    markets: () => ['BTC_USDT', 'ETH_USDT'],
    elsewhere: (market) => (market === 'SOL_USDT' ? { index: 1, count: 3 } : null),
    bots: () => ['main'],
    ttlMs: () => 15_000,
    hear: () => ({ counted: true }),
    afterGoodbye: async () => [],
    operate: async (command, waitMs) => {
      commands.push({ command, waitMs });
      const markets = command.markets ?? ['BTC_USDT', 'ETH_USDT'];
      return markets.map((market) => ({ market, state, says: `${market} is ${state}.` }));
    },
    cancelled: () => [],
    acknowledge: () => [],
    reload: async () => report,
    logLevel: () => levels.at(-1)?.level ?? 'info',
    setLogLevel: (level, forMs) => levels.push({ level, forMs }),
    onRefused: () => {},
  };
  const socket = `unix:${join(folder(), 'control.sock')}`;
  const control = await startControl({
    listen: [socket, '127.0.0.1:0'].map(addressOf),
    token: () => TOKEN,
    sources,
  });
  open.push(control);
  const tcp = new URL(control.addresses[1] ?? '').host;
  return { socket, tcp, commands, levels, ask: (...args: string[]) => run([...args, '--control', socket]) };
}

describe('with the control listener itself', () => {
  it('status shows what the daemon says', async () => {
    const { ask } = await listener();
    const { code, out } = await ask('status');
    expect(code).toBe(0);
    expect(out[0]).toMatch(/^killswitchd 1\.2\.3, up 2 h 5 min/);
  });

  it('a command arrives as it was meant, and its outcome comes back', async () => {
    const { ask, commands } = await listener();
    const paused = await ask('pause', '--yes', 'ETH_USDT', '--for', '10m', '--wait', '2');
    expect(paused).toMatchObject({ code: 0, out: ['ETH_USDT is done.'] });
    expect((await ask('trip', '--yes')).out).toEqual(['BTC_USDT is done.', 'ETH_USDT is done.']);
    expect(commands).toMatchObject([
      { command: { does: 'pause', markets: ['ETH_USDT'], forMs: 600_000 }, waitMs: 2000 },
      { command: { does: 'trip', markets: null }, waitMs: 15_000 },
    ]);
    const { ask: again } = await listener({ kind: 'unchanged' }, 'waiting');
    expect((await again('arm', '--wait', '0')).code).toBe(75);
    const { ask: never } = await listener({ kind: 'unchanged' }, 'impossible');
    expect((await never('arm')).code).toBe(69);
  });

  it('an unknown market is refused with the nearest name, and nothing is done', async () => {
    const { ask, commands } = await listener();
    const { code, err } = await ask('arm', 'ETH_USDT', 'BTC_USDC');
    expect(code).toBe(64);
    expect(err.join('\n')).toMatch(/"BTC_USDC".*did you mean BTC_USDT\?/);
    expect(commands).toEqual([]);
  });

  it('a reload tells what came of it', async () => {
    const applied = {
      kind: 'applied',
      added: ['ETH_USDT'],
      removed: [],
      moved: ['LTC_USDT'],
      changed: [],
      progress: [],
    } as const;
    const { code, out } = await (await listener(applied)).ask('reload');
    expect({ code, out }).toEqual({
      code: 0,
      out: ['The new configuration is in force.', 'Added: ETH_USDT.', 'Moved to another shard: LTC_USDT.'],
    });
    expect((await (await listener()).ask('reload')).code).toBe(0);
    const rejected = { kind: 'rejected', problems: ['k.yaml:1:1 markets: missing'] } as const;
    const wrong = await (await listener(rejected)).ask('reload');
    expect(wrong.code).toBe(78);
    expect(wrong.err).toContain('killswitchd reload: k.yaml:1:1 markets: missing');
  });

  it('the log level is set for as long as was said', async () => {
    const { ask, levels } = await listener();
    expect((await ask('log-level', 'debug', '--for', '90s')).code).toBe(0);
    expect(levels).toEqual([{ level: 'debug', forMs: 90_000 }]);
  });

  it('the health is that of the snapshot', async () => {
    const { ask } = await listener();
    expect((await ask('healthcheck', '--live')).code).toBe(0);
    const ready = await ask('healthcheck', '--ready');
    expect(ready.code).toBe(69);
    expect(ready.err[0]).toMatch(/is not ready: BTC_USDT is not confirmed armed \(arming\)$/);
  });

  it('at HOST:PORT the token opens it', async () => {
    const { tcp } = await listener();
    expect((await run(['status', '--control', tcp])).code).toBe(77);
    const file = fileWith(TOKEN);
    expect((await run(['status', '--control', tcp, '--token-file', file])).code).toBe(0);
  });
});
