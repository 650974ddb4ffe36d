import { setTimeout as sleep } from 'node:timers/promises';
import { type ExchangeProcess, eventually, kill, waitForAll } from './processes.ts';
import type { Seen } from './protocol.ts';
import { type Label, noter } from './rows.ts';
import type { Stage } from './stage.ts';
import { type DaemonSubject, type SubjectName, startDaemon, startPeer } from './subject.ts';

/**
 * Round trip in milliseconds, and as many markets as its requests arm in 7 to 10 s. With so many that have so short a
 * timeout the cadence must follow what the requests carry.
 */
const SERIAL = [
  { roundTripMs: 1, markets: 5000 },
  { roundTripMs: 20, markets: 450 },
  { roundTripMs: 100, markets: 95 },
] as const;
type Serial = (typeof SERIAL)[number];
/** All are due at once at first, and spread over the period while requests are left over. */
const SETTLES_WITHIN_MS = 90_000;

/** Requests one after the other: how much of what the round trip allows is used, and what the daemon says about it. */
export async function runSerial(stage: Stage): Promise<void> {
  stage.say('nonces that rise, at round trips of 1, 20 and 100 ms');
  const [first, ...others] = SERIAL;
  await runSerialAt(stage, first);
  await Promise.all(others.map((other) => runSerialAt(stage, other)));
}

async function runSerialAt(stage: Stage, serial: Serial): Promise<void> {
  const { rig } = stage;
  const { roundTripMs, markets } = serial;
  const exchange = await rig.exchange('tls', roundTripMs);
  const { url } = exchange;
  const label = { id: String(roundTripMs), name: `rising nonces, round trip ${roundTripMs} ms` };
  // What two bare loops get out of the same wire.
  for (const kind of ['undici', 'floor'] as const) {
    const peer = startPeer(rig, { kind, url, markets, periodMs: 0, connections: 1 });
    await noteArming(stage, label, kind, exchange, serial);
    await peer.kill();
    await exchange.forget();
  }
  const config = { exchange: { nonce: 'increasing' } };
  const daemon = await startDaemon(rig, { url, markets, config });
  await noteArming(stage, label, 'daemon', exchange, serial);
  await noteCadence(stage, label, daemon, exchange, markets);
  await daemon.kill();
  await kill(exchange.running);
}

/** What requests one after the other carried; shares in per cent of the most that they can be. */
export interface Carried {
  /** Renewals. */
  readonly perSecond: number;
  /** Of as many as round trips of the length that was asked for allow. */
  readonly ofInjected: number;
  /** Of as many as round trips allow that are as long as the timers of the exchange made them: what the wire carries. */
  readonly ofHeld: number;
}

export function carriedOf(
  { renewals, heldMs }: Pick<Seen, 'renewals' | 'heldMs'>,
  lastedMs: number,
  roundTripMs: number,
): Carried {
  return {
    perSecond: (renewals / lastedMs) * 1000,
    ofInjected: ((renewals * roundTripMs) / lastedMs) * 100,
    ofHeld: (heldMs / lastedMs) * 100,
  };
}

/** What is carried from a tenth of the markets armed to all of them. */
async function noteArming(
  stage: Stage,
  label: Label,
  subject: SubjectName,
  exchange: ExchangeProcess,
  { roundTripMs, markets }: Serial,
): Promise<void> {
  await waitForAll(exchange, Math.floor(markets / 10));
  const before = await exchange.read();
  await exchange.count();
  await waitForAll(exchange, markets);
  const seen = await exchange.read();
  const carried = carriedOf(seen, seen.lastRenewalAt - before.lastRenewalAt, roundTripMs);
  const note = noter(stage, label, subject);
  note('serial', 'Share of 1/injected round trip', '%', 1, carried.ofInjected);
  note('serial-held', 'Share of 1/round trip as it was really held', '%', 1, carried.ofHeld);
  note('serial-rate', 'Renewals a second while arming', '/s', 1, carried.perSecond);
}

/** Whether the daemon says that the cadence follows, and whether the period that it then keeps to is what it carries. */
async function noteCadence(
  stage: Stage,
  label: Label,
  daemon: DaemonSubject,
  exchange: ExchangeProcess,
  markets: number,
): Promise<void> {
  const note = noter(stage, label, 'daemon');
  const said = await eventually('a word about the cadence', 8000, () =>
    daemon.running.log().includes('the cadence follows') ? 1 : null,
  ).catch(() => 0);
  note('serial-said', 'Says which cadence that carries', '', 0, said);
  await sleep(SETTLES_WITHIN_MS);
  const countedMs = await daemon.periodMs();
  await exchange.count();
  await sleep(countedMs);
  const { renewals } = await exchange.read();
  const carriedMs = (countedMs * markets) / renewals;
  const inForceMs = await daemon.periodMs();
  note('serial-period', 'Period in force', 's', 2, inForceMs / 1000);
  note('serial-carried', 'Markets / renewals a second that were carried', 's', 2, carriedMs / 1000);
  note('serial-apart', 'Between these two', '%', 1, Math.abs(inForceMs / carriedMs - 1) * 100);
}
