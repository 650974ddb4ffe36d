import { describe, expect, it } from 'vitest';
import { calm, daemon } from './calm.ts';
import { createCourtroom } from './courtroom.ts';

const DAEMON = 'daemon 0 (life 1)';

describe('invariants 5 to 7, deletes: a judge sees', () => {
  it('a delete that nobody asked for', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.delete();
    expect(room.findings()).toEqual([
      `5 delete on purpose: M0_USDT: ${DAEMON} deleted a timer that nobody asked it to delete`,
    ]);
  });

  it('a delete under another policy', () => {
    const room = createCourtroom(calm({ daemons: [daemon({ policy: 'keep' })] }));
    room.beat();
    room.first().stoppingMs = 0;
    room.delete();
    expect(room.findings()).toHaveLength(1);
  });

  it("a delete of a dead bot's timer, unless it said goodbye", () => {
    const room = createCourtroom(calm());
    room.pass(30_000);
    room.first().stoppingMs = 30_000;
    room.delete();
    expect(room.findings()).toEqual([
      `5 delete on purpose: M0_USDT: ${DAEMON} deleted the timer of a dead bot`,
    ]);
    room.says('goodbye');
    room.delete();
    expect(room.findings()).toHaveLength(1);
  });

  it('a delete for a bot that was last heard before the stop', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.pass(1000);
    room.first().stoppingMs = 1000;
    room.delete();
    expect(room.findings()).toHaveLength(1);
  });

  it.each([
    { failsFirst: true, says: [`5 delete on purpose: M0_USDT: ${DAEMON} deleted the timer of a dead bot`] },
    { failsFirst: false, says: [] },
  ])(
    'a delete that leaves after its bot failed, and no wrong in one that was on its way ($failsFirst)',
    ({ failsFirst, says }) => {
      const room = createCourtroom(calm());
      room.first().stoppingMs = 0;
      room.beat();
      room.decided();
      const written = room.sent(null);
      if (failsFirst) room.says('fail');
      room.judge.onWrite(written);
      if (!failsFirst) room.says('fail');
      room.pass(300);
      room.delete(written);
      expect(room.findings()).toEqual(says);
    },
  );

  it('a delete that left before its bot was heard in the stop, though a beat comes before it is carried out', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.decided();
    room.pass(1000);
    room.first().stoppingMs = 1000;
    const written = room.sent(null);
    room.judge.onWrite(written);
    room.beat();
    room.delete(written);
    expect(room.findings()).toHaveLength(1);
  });

  it('a delete that is written while a renewal is still on its way', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.decided();
    room.judge.onIntent(room.first(), 'M0_USDT', 'disarm');
    room.believe({ inFlight: ['renew'] });
    room.judge.onWrite(room.sent(null));
    expect(room.findings()).toEqual([
      `6 nothing after delete: M0_USDT: ${DAEMON} wrote a delete beside a renewal in flight`,
    ]);
  });

  it('a renewal that is carried out after the delete', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.decided();
    room.first().stoppingMs = 0;
    const written = room.sent(null);
    room.judge.onWrite(written);
    room.delete(written);
    room.arm(60);
    expect(room.findings()).toEqual([
      `6 nothing after delete: M0_USDT: a renewal of ${DAEMON} was carried out after its delete`,
    ]);
  });

  it('a delete that is written when nobody asks for it any more, if it may still arrive then', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.decided();
    room.judge.onIntent(room.first(), 'M0_USDT', 'disarm');
    room.judge.onIntent(room.first(), 'M0_USDT', 'guard');
    room.delete();
    expect(room.findings()).toEqual([]);
    room.judge.onWrite(room.sent(null));
    expect(room.findings()).toEqual([
      `5 delete on purpose: M0_USDT: ${DAEMON} wrote a delete that nobody asks for now`,
    ]);
  });

  it('a delete of a timer that this process never armed', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.judge.onIntent(room.first(), 'M0_USDT', 'disarm');
    room.judge.onWrite(room.sent(null));
    expect(room.findings()).toEqual([
      `5 delete on purpose: M0_USDT: ${DAEMON} wrote a delete of what it never armed`,
    ]);
    room.decided();
    room.judge.onWrite(room.sent(null));
    expect(room.findings()).toHaveLength(1);
  });

  /** In a nonce window a renewal is carried out after the delete of a stop, so long after it was written. */
  function stopped(
    writtenBeforeMs: number,
    left: Parameters<ReturnType<typeof createCourtroom>['stopped']>[0],
  ) {
    const room = createCourtroom(calm({ nonce: 'window' }));
    room.pass(10_000);
    room.beat();
    room.decided();
    const stray = room.sent(60);
    room.judge.onWrite(stray);
    room.pass(writtenBeforeMs);
    room.first().stoppingMs = 10_000 + writtenBeforeMs;
    room.beat();
    const written = room.sent(null);
    room.judge.onWrite(written);
    room.delete(written);
    room.pass(1000);
    room.arm(60, stray);
    room.stopped(left);
    return room.findings();
  }

  it('in a nonce window, a stop that had the time to wait for a renewal, and did not', () => {
    const left = [{ market: 'M0_USDT', firesByWallMs: 100_000, why: 'unconfirmed' }] as const;
    expect(stopped(4000, left)).toEqual([
      `6 nothing after delete: M0_USDT: ${DAEMON} wrote a delete while a renewal could still arrive behind it`,
      `6 nothing after delete: M0_USDT: a renewal of ${DAEMON} was carried out after its delete`,
    ]);
    expect(stopped(2000, left)).toEqual([]);
  });

  it('a timer that was to be deleted, and is said to be left on purpose', () => {
    expect(stopped(2000, [{ market: 'M0_USDT', firesByWallMs: 100_000, why: 'policy' }])).toEqual([
      `7 unconfirmed delete: M0_USDT: ${DAEMON} says that it left on purpose what it tried to delete`,
    ]);
  });

  it('a timer that the daemon left and did not name', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.arm(60);
    room.stopped();
    expect(room.findings()).toEqual([
      `7 unconfirmed delete: M0_USDT: ${DAEMON} ended without naming the timer that it left`,
    ]);
  });

  it('a timer that fires later than the daemon said', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.arm(60);
    room.stopped([{ market: 'M0_USDT', firesByWallMs: 50_000, why: 'unconfirmed' }]);
    expect(room.findings()).toEqual([
      `7 unconfirmed delete: M0_USDT: fires later than ${DAEMON} said when it ended`,
    ]);
  });

  it('a renewal that is carried out after the daemon ended and named nothing, even if it runs again', () => {
    const room = createCourtroom(calm());
    room.beat();
    const stray = room.sent(60);
    room.stopped();
    room.begin(0, 2);
    room.arm(60, stray);
    expect(room.findings()).toEqual([
      `7 unconfirmed delete: M0_USDT: ${DAEMON} ended saying that no timer is left, and one is`,
    ]);
  });
});

describe('invariant 8, lapses: a judge sees', () => {
  it('a timer that fired and was armed again without a word', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    room.fire(60);
    room.renewed(130);
    expect(room.findings()).toEqual([
      `8 lapses: M0_USDT: ${DAEMON} armed it again after a lapse and said nothing`,
    ]);
  });

  it('one whose new timer begins in the very second in which the old one ended', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    room.fire(60);
    room.renewed(120);
    expect(room.findings()).toHaveLength(1);
  });

  it('one gap that is reported twice', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    room.fire(60);
    room.lapsed('certain');
    room.lapsed('certain');
    expect(room.findings()).toEqual([`8 lapses: M0_USDT: ${DAEMON} reported one gap twice`]);
  });

  it('a lapse that is called possible while nothing has armed the timer again', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    room.fire(60);
    room.lapsed('possible');
    expect(room.findings()).toEqual([`8 lapses: M0_USDT: ${DAEMON} calls a lapse possible that is certain`]);
  });

  it.each([
    { besides: false, says: [`8 lapses: M0_USDT: ${DAEMON} calls a lapse possible that is certain`] },
    { besides: true, says: [] },
  ])(
    'a lapse called possible that stamps show, unless another renewal left in time ($besides)',
    ({ besides, says }) => {
      const room = createCourtroom(calm({ watched: false }));
      room.judge.onWrite(room.sent(60));
      const ends = room.arm(60);
      room.pass(15);
      if (besides) room.judge.onWrite(room.sent(60));
      room.pass(5);
      room.renewed(ends);
      room.pass(60_000);
      room.fire(ends);
      room.pass(10_000);
      room.judge.onWrite(room.sent(60));
      room.arm(60);
      room.lapsed('possible');
      expect(room.findings().filter((finding) => finding.startsWith('8'))).toEqual(says);
    },
  );

  it('a certain lapse of a timer that never fired', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    room.lapsed('certain');
    expect(room.findings()).toEqual([`8 lapses: M0_USDT: ${DAEMON} is certain of a lapse that never was`]);
  });

  it('a certain lapse of a timer that fired while nobody wanted it', () => {
    const room = createCourtroom(calm());
    room.renewed(60);
    room.believe({ armedUntilMs: 59_000 });
    room.notice({ kind: 'suspended', market: 'M0_USDT', why: 'bot_stale', firesByWallMs: null });
    room.fire(60);
    room.pass(1000);
    room.notice({ kind: 'resumed', market: 'M0_USDT' });
    room.lapsed('certain');
    expect(room.findings()).toEqual([
      `8 lapses: M0_USDT: ${DAEMON} is certain of a lapse while nobody wanted the timer`,
    ]);
  });

  it("a streak of failures that another market's success has ended", () => {
    const room = createCourtroom(calm());
    room.failed(1);
    room.failed(2);
    room.failed(1);
    expect(room.findings()).toEqual([
      `8 lapses: M0_USDT: ${DAEMON} counts 1 failures in a row, there were 3`,
    ]);
  });
});

describe('a market that went to another daemon: a judge sees', () => {
  it('a delete of its timer, also one that an operator asks for', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.decided();
    room.judge.onMove(room.first(), 'M0_USDT', true);
    room.judge.onIntent(room.first(), 'M0_USDT', 'disarm');
    room.judge.onWrite(room.sent(null));
    expect(room.findings()).toEqual([
      `5 delete on purpose: M0_USDT: ${DAEMON} wrote a delete of what another daemon renews`,
    ]);
  });

  it('no wrong in a delete once it is back, or was taken out for good', () => {
    const room = createCourtroom(calm());
    room.beat();
    room.decided();
    room.judge.onMove(room.first(), 'M0_USDT', true);
    room.judge.onMove(room.first(), 'M0_USDT', false);
    room.judge.onIntent(room.first(), 'M0_USDT', 'disarm');
    room.judge.onWrite(room.sent(null));
    room.delete();
    room.judge.onMove(room.first(), 'M0_USDT', true);
    room.judge.onIntent(room.first(), 'M0_USDT', 'remove');
    room.judge.onWrite(room.sent(null));
    room.delete();
    expect(room.findings()).toEqual([]);
  });
});
