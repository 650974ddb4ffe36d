import { describe, expect, it } from 'vitest';
import { calm, fault, market } from './calm.ts';
import { createCourtroom } from './courtroom.ts';

const DAEMON = 'daemon 0 (life 1)';

describe('a judge of the simulation says nothing', () => {
  it('about a renewal that is believed for as long as it lasts', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.judge.onWrite(room.sent(60));
    room.arm(60);
    room.believe({ armedUntilMs: 59_000, firesByMs: 61_000 });
    room.judge.onTurn(room.first());
    room.renewed(60);
    room.judge.onEnd();
    expect(room.findings()).toEqual([]);
  });
});

describe('invariant 1, belief: a judge sees', () => {
  it('a timer that is believed and does not exist', () => {
    const room = createCourtroom(calm());
    room.believe({ armedUntilMs: 5_000 });
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([
      `1 belief: M0_USDT: ${DAEMON} believes it armed for 5000 ms more, and it is not`,
    ]);
  });

  it('a timer that is believed for longer than it lasts', () => {
    const room = createCourtroom(calm());
    room.arm(60);
    room.believe({ armedUntilMs: 70_000, firesByMs: 79_000 });
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([
      `1 belief: M0_USDT: ${DAEMON} believes it armed 10000 ms longer than it is`,
    ]);
  });

  it('a timer that fires later than the daemon thinks possible', () => {
    const room = createCourtroom(calm());
    room.arm(60);
    room.believe({ firesByMs: 50_000 });
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([`1 belief: M0_USDT: fires in 60000 ms, ${DAEMON} says within 50000 ms`]);
  });

  it('the same at the very moment at which something happens to the timer', () => {
    const room = createCourtroom(calm());
    room.believe({ firesByMs: 50_000 });
    room.judge.onChanged(room.armed(60));
    expect(room.findings()).toEqual([`1 belief: M0_USDT: fires in 60000 ms, ${DAEMON} says within 50000 ms`]);
  });

  it('a request that leaves long after the daemon began to count its time', () => {
    const room = createCourtroom(calm());
    room.decided();
    room.pass(700);
    room.judge.onWrite(room.sent(60, { nth: 0 }));
    expect(room.findings()).toEqual([]);
    room.decided();
    room.pass(800);
    room.judge.onWrite(room.sent(60, { nth: 1 }));
    expect(room.findings()).toEqual([
      `1 belief: M0_USDT: ${DAEMON} wrote a request 800 ms after it had decided on it`,
    ]);
  });

  it('nothing for a while after somebody else changed the timer', () => {
    const room = createCourtroom(calm());
    room.arm(60);
    room.believe({ armedUntilMs: 59_000 });
    room.delete(null);
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([]);
  });

  it('the difference between a daemon and its earlier life, whose requests it cannot know of', () => {
    const room = createCourtroom(calm());
    const stray = room.sent(60);
    room.begin(0, 2);
    room.arm(60, stray);
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([]);
  });
});

describe('invariant 2, false lapse: a judge sees', () => {
  const armedForAWhile = (room: ReturnType<typeof createCourtroom>) => {
    room.renewed(room.arm(60));
    for (let passed = 0; passed < 120_000; passed += 3_000) {
      room.beat();
      room.pass(3_000);
    }
  };

  it('a timer that fired while the bot lived and nothing was wrong', () => {
    const room = createCourtroom(calm({ faultyMs: 180_000 }));
    armedForAWhile(room);
    room.fire(120);
    expect(room.findings()).toEqual([
      `2 false lapse: M0_USDT: fired although ${DAEMON} ran, its bot lived and no outage was long enough`,
    ]);
  });

  it('one that fired after an outage shorter than the promise', () => {
    const outage = fault({ kind: 'black-hole', atMs: 80_000, forMs: 20_000 });
    const room = createCourtroom(calm({ faultyMs: 180_000, faults: [outage] }));
    armedForAWhile(room);
    room.fire(120);
    expect(room.findings()).toHaveLength(1);
  });

  it('nothing wrong with one that fired in an outage longer than the promise', () => {
    const outage = fault({ kind: 'black-hole', atMs: 60_000, forMs: 60_000 });
    const room = createCourtroom(calm({ faultyMs: 180_000, faults: [outage] }));
    armedForAWhile(room);
    room.fire(120);
    expect(room.findings()).toEqual([]);
  });

  it("one that fired in an outage of another market's requests, or of one address of two", () => {
    const elsewhere = [
      fault({ kind: 'black-hole', atMs: 60_000, forMs: 60_000, target: 1 }),
      fault({ kind: 'base-silent', atMs: 60_000, forMs: 60_000, target: 0 }),
    ];
    for (const outage of elsewhere) {
      const markets = [market(), market({ market: 'M1_USDT' })];
      const room = createCourtroom(calm({ faultyMs: 180_000, bases: 2, markets, faults: [outage] }));
      armedForAWhile(room);
      room.fire(120);
      expect(room.findings()).toHaveLength(1);
    }
  });

  it('nothing wrong with one whose bot was silent', () => {
    const room = createCourtroom(calm({ faultyMs: 180_000 }));
    armedForAWhile(room);
    room.pass(60_000);
    room.fire(180);
    expect(room.findings()).toEqual([]);
  });
});

describe('invariants 3 and 4, evidence: a judge sees', () => {
  it('a renewal that is written after the evidence ran out', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.pass(15_500);
    room.judge.onWrite(room.sent(60));
    expect(room.findings()).toEqual([
      `4 posthumous renewal: M0_USDT: ${DAEMON} renewed 500 ms after the evidence ran out`,
    ]);
  });

  it('a renewal that is written after the bot said that it failed', () => {
    const room = createCourtroom(calm());
    room.says('fail');
    room.pass(100);
    room.judge.onWrite(room.sent(60));
    expect(room.findings()).toHaveLength(1);
  });

  it('a timer that fires later than the bound counted from the last evidence', () => {
    const room = createCourtroom(calm());
    room.beat();
    // 15 s of evidence, 10 s on the way and a second for rounding: at 27 s it fires a second too late.
    room.pass(27_000);
    room.arm(60);
    expect(room.findings()).toEqual([
      '3 bounded kill: M0_USDT: fires 1000 ms after the latest moment promised',
    ]);
  });

  it('the trip of a dead bot as what it is', () => {
    const room = createCourtroom(calm({ onStale: 'trip' }));
    room.beat();
    room.pass(16_000);
    room.judge.onWrite(room.sent(5));
    expect(room.findings()).toEqual([]);
  });
});

describe('invariants 9 and 10, pace: a judge sees', () => {
  it('a nonce that is used twice', () => {
    const room = createCourtroom(calm({ nonce: 'window', watched: false }));
    room.judge.onWrite(room.sent(60, { nonce: '100' }));
    room.judge.onWrite(room.sent(60, { nonce: '100' }));
    expect(room.findings()).toEqual([`9 nonces: ${DAEMON} used 100 twice`]);
  });

  it('nonces that fall', () => {
    const room = createCourtroom(calm());
    room.judge.onWrite(room.sent(60, { nonce: '1000' }));
    room.judge.onWrite(room.sent(60, { nonce: '999' }));
    expect(room.findings()).toEqual([`9 nonces: ${DAEMON}: 999 after 1000`]);
  });

  it('nothing wrong with requests that leave in another order than they were signed in', () => {
    const room = createCourtroom(calm());
    const first = room.sent(60, { nonce: '1000' });
    room.judge.onWrite(room.sent(60, { nonce: '1001' }));
    room.judge.onWrite(first);
    expect(room.findings()).toEqual([]);
  });

  it('more requests in ten seconds than the budget', () => {
    const room = createCourtroom(calm({ budgetRequests: 10 }));
    for (let count = 0; count < 11; count += 1) {
      room.judge.onWrite(room.sent(60));
      room.pass(900);
    }
    expect(room.findings()).toEqual([`10 rate: ${DAEMON} wrote 11 requests within 10 s, allowed 10`]);
  });
});

describe('invariant 11, progress: a judge sees', () => {
  /** Two markets that are behind, of which the first is written; milliseconds that they are still guaranteed. */
  function renewed(firstSlackMs: number, secondSlackMs: number) {
    const room = createCourtroom(calm({ markets: [market(), market({ market: 'M1_USDT' })] }));
    for (const [name, slackMs] of [['M0_USDT', firstSlackMs] as const, ['M1_USDT', secondSlackMs] as const]) {
      room.decided('renew', 0, name);
      room.renewed(60, name);
      room.believe({ armedUntilMs: 30_000 + slackMs }, name);
    }
    room.pass(30_000);
    room.judge.onWrite(room.sent(60));
    return room.findings().filter((finding) => finding.startsWith('11'));
  }

  it('a renewal that is written before one whose timer ends sooner', () => {
    expect(renewed(30_000, 10_000)).toEqual([
      `11 progress: M0_USDT: ${DAEMON} renewed it before M1_USDT, which ends sooner`,
    ]);
    expect(renewed(10_000, 30_000)).toEqual([]);
  });

  it('a timer that is armed again before another one is saved', () => {
    expect(renewed(-1000, 10_000)).toHaveLength(1);
    expect(renewed(10_000, -1000)).toEqual([]);
    expect(renewed(-1000, -5000)).toEqual([]);
    // What has lapsed waits for 5 s at most for what has more than half of its time.
    expect(renewed(-1000, 40_000)).toEqual([]);
  });

  it('a market that is not armed at the end, and one that nobody believes armed', () => {
    const room = createCourtroom(calm());
    room.judge.onEnd();
    expect(room.findings()).toEqual([
      '11 progress: M0_USDT: not armed at the exchange long after the last fault',
      `11 progress: M0_USDT: ${DAEMON} does not believe it armed long after the last fault`,
    ]);
  });

  it('a market that nobody believes armed after a delete, unless that may still land on a tight budget', () => {
    const findings = (afterMs: number, budgetRequests: number, isConfirmed = false) => {
      const room = createCourtroom(calm({ nonce: 'window', budgetRequests }));
      room.pass(60_000);
      room.judge.onWrite(room.sent(null));
      if (isConfirmed)
        room.notice({ kind: 'deleted', market: 'M0_USDT', durationMs: 0, mayHaveFired: false });
      room.pass(afterMs);
      room.arm(60);
      room.judge.onEnd();
      return room.findings().filter((finding) => finding.includes('does not believe'));
    };
    // The lifetime of the delete, a third of the timeout, and 15 s.
    expect(findings(45_000, 30)).toEqual([]);
    expect(findings(45_500, 30)).toHaveLength(1);
    expect(findings(45_000, 30, true)).toHaveLength(1);
    expect(findings(45_000, 5000)).toHaveLength(1);
  });

  it('a world in which no daemon runs any more', () => {
    const room = createCourtroom(calm({ daemons: [] }));
    room.arm(60);
    room.judge.onEnd();
    expect(room.findings()).toEqual(['11 progress: no daemon runs at the end']);
  });
});

describe('with several markets a judge', () => {
  it('tells them apart', () => {
    const room = createCourtroom(calm({ markets: [market(), market({ market: 'M1_USDT' })] }));
    room.arm(60);
    room.believe({ firesByMs: 69_000 });
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([]);
  });
});
