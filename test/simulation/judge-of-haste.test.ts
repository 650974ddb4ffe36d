import { describe, expect, it } from 'vitest';
import { calm, fault, market } from './calm.ts';
import type { Sent } from './court.ts';
import { createCourtroom } from './courtroom.ts';

const DAEMON = 'daemon 0 (life 1)';

describe('invariant 2, latches: a judge sees', () => {
  const refuse = (room: ReturnType<typeof createCourtroom>, reason: 'validation' | 'auth') =>
    room.notice({
      kind: 'attempt-failed',
      market: 'M0_USDT',
      purpose: 'renew',
      reason,
      detail: '',
      // Without a streak: an answer to an attempt that a newer one has overtaken.
      streak: 0,
      durationMs: 0,
    });
  const latchMarket = (room: ReturnType<typeof createCourtroom>) =>
    room.notice({
      kind: 'refused',
      market: 'M0_USDT',
      code: 31,
      detail: '',
      probeInMs: 60_000,
      expiryWallMs: null,
    });
  const latchKey = (room: ReturnType<typeof createCourtroom>) =>
    room.notice({ kind: 'unauthorised', status: 401, detail: '', probeInMs: 60_000, expiryWallMs: null });

  it('a market that is given up for one refusal, unless it was never good', () => {
    const room = createCourtroom(calm());
    refuse(room, 'validation');
    latchMarket(room);
    expect(room.findings()).toEqual([]);
    room.renewed(60);
    refuse(room, 'validation');
    latchMarket(room);
    expect(room.findings()).toEqual([`2 false lapse: M0_USDT: ${DAEMON} gave it up after 1 refusals`]);
  });

  it('a key that is given up for one refusal', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    refuse(room, 'auth');
    latchKey(room);
    expect(room.findings()).toEqual([`2 false lapse: the key: ${DAEMON} gave it up after 1 refusals`]);
  });

  it('nothing wrong with what is given up after the second refusal in a row', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    for (let count = 0; count < 2; count += 1) {
      refuse(room, 'validation');
      refuse(room, 'auth');
    }
    latchMarket(room);
    latchKey(room);
    expect(room.findings()).toEqual([]);
  });
});

describe('invariant 3, trips: a judge sees', () => {
  /** A bot that is silent from 40 s on has evidence until 55 s; its timer of 20 s was renewed last at `renewedMs`. */
  function outlived(renewedMs: number, plan: Parameters<typeof calm>[0] = {}) {
    const markets = [market({ timeoutSeconds: 20 })];
    const room = createCourtroom(calm({ onStale: 'trip', faultyMs: 180_000, markets, ...plan }));
    room.pass(40_000);
    room.beat();
    room.pass(renewedMs - 40_000);
    room.arm(20);
    room.pass(66_000 - renewedMs);
    room.judge.onTurn(room.first());
    // Nothing is believed here.
    return room.findings().filter((finding) => !finding.startsWith('1 belief'));
  }

  it('a timer that outlives its bot by more than what a trip leaves it', () => {
    // Evidence until 55 s, 10 s on the way, 5 s of timer and a second for rounding.
    expect(outlived(51_000)).toEqual([]);
    expect(outlived(53_000)).toEqual([
      `3 bounded kill: M0_USDT: ${DAEMON} did not cut it short, it fires 2000 ms too late`,
    ]);
  });

  it('nothing where there is no trip, or requests could not reach the exchange', () => {
    expect(outlived(53_000, { onStale: 'expire' })).toEqual([]);
    expect(outlived(53_000, { faults: [fault({ kind: 'black-hole', atMs: 60_000 })] })).toEqual([]);
  });
});

describe('invariant 11, recovery: a judge sees', () => {
  /** An outage has ended; what became of the market that it kept from being renewed. */
  function afterOutage(renew: boolean, faults: Parameters<typeof calm>[0] = {}) {
    const room = createCourtroom(calm(faults));
    room.pass(5000);
    room.decided();
    room.renewed(60);
    room.believe({ armedUntilMs: 64_000 });
    room.pass(15_000);
    room.notice({ kind: 'outage-ended', base: 0, lastedMs: 10_000, attempts: 3 });
    room.pass(500);
    if (renew) room.decided();
    room.pass(1000);
    room.judge.onTurn(room.first());
    return room.findings().filter((finding) => finding.startsWith('11'));
  }

  it('a market that missed a renewal in an outage and is not renewed when it is over', () => {
    expect(afterOutage(true)).toEqual([]);
    expect(afterOutage(false)).toEqual([
      `11 progress: M0_USDT: ${DAEMON} did not renew it within 1050 ms of an outage`,
    ]);
  });

  it('nothing wrong while the next fault strikes', () => {
    expect(afterOutage(false, { faults: [fault({ kind: 'lose-reply', atMs: 20_500 })] })).toEqual([]);
  });
});

describe('invariants 10 and 12, isolation: a judge sees', () => {
  const markets = [market(), market({ market: 'M1_USDT' })];
  /** A renewal of the first market leaves so late, while these faults strike. */
  function late(delayMs: number, plan: Parameters<typeof calm>[0]) {
    const room = createCourtroom(calm({ nonce: 'window', markets, faultyMs: 180_000, ...plan }));
    const live = (untilMs: number) => {
      for (; room.nowMs() < untilMs; room.pass(Math.min(2000, untilMs - room.nowMs()))) room.beat();
    };
    live(54_000 - delayMs);
    room.judge.onWrite(room.sent(60));
    live(60_000);
    room.judge.onWrite(room.sent(60));
    return room.findings();
  }

  it("a renewal that waits for another market's requests", () => {
    const faults = [fault({ kind: 'black-hole', atMs: 50_000, forMs: 20_000, target: 1 })];
    expect(late(900, { faults })).toEqual([]);
    expect(late(1500, { faults })).toEqual([
      `12 isolation: M0_USDT: ${DAEMON} renewed it 1500 ms after it was due`,
    ]);
  });

  it('more patience only while three requests of its own are on their way to a slow exchange', () => {
    const slow = { kind: 'slow-body', atMs: 0, forMs: 180_000, sizeMs: 4000, target: 0 } as const;
    const short = [market({ timeoutSeconds: 10 })];
    const room = createCourtroom(
      calm({ nonce: 'window', markets: short, faultyMs: 180_000, wider: true, faults: [fault(slow)] }),
    );
    const live = (untilMs: number) => {
      for (; room.nowMs() < untilMs; room.pass(Math.min(2000, untilMs - room.nowMs()))) room.beat();
    };
    const writeAt = (untilMs: number) => {
      live(untilMs);
      const sent = room.sent(10);
      room.judge.onWrite(sent);
      return sent;
    };
    const settleAt = (untilMs: number, sent: Sent) => {
      live(untilMs);
      room.judge.onSettled(sent);
    };
    const first = [20_000, 21_000, 22_000].map(writeAt);
    // Due at 23 s; the renewal of 20 s was answered at 24 s.
    for (const [index, sent] of first.entries()) settleAt(24_000 + index, sent);
    writeAt(24_600);
    expect(room.findings()).toEqual([]);
    // Due at 25.6 s, with one request on its way.
    writeAt(27_200);
    const late = `12 isolation: M0_USDT: ${DAEMON} renewed it 1600 ms after it was due`;
    expect(room.findings()).toEqual([late]);
    writeAt(28_200);
    // The oldest should have been answered at 28.67 s: it gives its place away then.
    writeAt(30_300);
    expect(room.findings()).toEqual([late, late.replace('1600', '1100')]);
  });

  it('nothing wrong with one that its own requests, or a stall, have delayed', () => {
    for (const kind of ['black-hole', 'stall'] as const)
      expect(late(1500, { faults: [fault({ kind, atMs: 50_000, target: 0 })] })).toEqual([]);
  });

  it('more patience where requests go one after the other, and nothing where they leave no room', () => {
    const faults = [fault({ kind: 'black-hole', atMs: 50_000, forMs: 20_000, target: 1 })];
    expect(late(1500, { nonce: 'increasing', roundTripMs: 50, faults })).toEqual([]);
    expect(late(2500, { nonce: 'increasing', roundTripMs: 50, faults })).toHaveLength(1);
    expect(late(9000, { nonce: 'increasing', roundTripMs: 2000, faults })).toEqual([]);
  });
});
