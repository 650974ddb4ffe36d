import { describe, expect, it } from 'vitest';
import { calm, daemon, fault, market } from './calm.ts';
import { createCourtroom } from './courtroom.ts';

// That judges blame nobody who keeps a promise is shown by every seed and every kept plan. What the planted bugs show is
// not repeated here.

type Room = ReturnType<typeof createCourtroom>;
type Patch = Parameters<typeof calm>[0];

/** In a world of this plan, after this, judges find what these expressions say, and nothing else. */
function sees(
  what: string,
  found: RegExp | readonly RegExp[],
  happen: (room: Room) => void,
  plan: Patch = {},
) {
  it(`sees ${what}`, () => {
    const room = createCourtroom(calm(plan));
    happen(room);
    expect(room.findings()).toEqual([found].flat().map((words) => expect.stringMatching(words)));
  });
}
const write = (room: Room, timeoutSeconds: number | null, more: Parameters<Room['sent']>[1] = {}) => {
  const sent = room.sent(timeoutSeconds, more);
  room.judge.onWrite(sent);
  return sent;
};
const asks = (room: Room, ...intents: Parameters<Room['judge']['onIntent']>[2][]) => {
  for (const intent of intents) room.judge.onIntent(room.first(), 'M0_USDT', intent);
};
const stops = (room: Room) => {
  room.first().stoppingMs = room.nowMs();
};
const TWO = [market(), market({ market: 'M1_USDT' })];

describe('invariants 1 to 4: a judge', () => {
  sees(
    'a wrong belief at the very moment at which something happens to the timer',
    /^1 .* within 50000 ms$/,
    (room) => {
      room.believe({ firesByMs: 50_000 });
      room.judge.onChanged(room.armed(60));
    },
  );

  it('says nothing of what another life, or somebody else, did to the timer', () => {
    const room = createCourtroom(calm());
    const stray = room.sent(60);
    room.begin(0, 2);
    room.arm(60, stray);
    room.believe({ armedUntilMs: 59_000 });
    room.delete(null);
    room.judge.onTurn(room.first());
    expect(room.findings()).toEqual([]);
  });

  const outage = fault({ kind: 'black-hole', atMs: 60_000, forMs: 60_000 });
  it.each([
    ['without an outage', [], 1],
    ['after an outage shorter than the promise', [{ ...outage, atMs: 80_000, forMs: 20_000 }], 1],
    ["in an outage of another market's requests", [{ ...outage, target: 1 }], 1],
    ['in an outage of one address of two', [{ ...outage, kind: 'base-silent', target: 0 } as const], 1],
    ['in an outage longer than the promise', [outage], 0],
  ])('sees a timer that fired %s while its bot lived: %j', (_what, faults, findings) => {
    const room = createCourtroom(calm({ faultyMs: 180_000, bases: 2, markets: TWO, faults }));
    room.renewed(room.arm(60));
    for (let passed = 0; passed < 120_000; passed += 3_000) {
      room.beat();
      room.pass(3_000);
    }
    room.fire(120);
    expect(room.findings()).toHaveLength(findings);
  });

  const fails = (room: Room, reason: 'validation' | 'auth') => room.notice({ ...ATTEMPT_FAILED, reason });
  const ATTEMPT_FAILED = {
    kind: 'attempt-failed',
    market: 'M0_USDT',
    purpose: 'renew',
    detail: '',
    // An answer to an attempt that a newer one has overtaken.
    streak: 0,
    durationMs: 0,
  } as const;
  const latched = { detail: '', probeInMs: 60_000, expiryWallMs: null };
  const latchesMarket = (room: Room) =>
    room.notice({ kind: 'refused', market: 'M0_USDT', code: 31, ...latched });
  const latchesKey = (room: Room) => room.notice({ kind: 'unauthorised', status: 401, ...latched });

  sees('a market that is given up for one refusal', /^2 .* gave it up after 1 refusals/, (room) => {
    fails(room, 'validation');
    latchesMarket(room);
    room.renewed(60);
    fails(room, 'validation');
    latchesMarket(room);
  });
  sees('a key that is given up for one refusal', /^2 .* the key: .* gave it up after 1 refusals/, (room) => {
    room.renewed(60);
    fails(room, 'auth');
    latchesKey(room);
  });

  sees('a renewal after the bot said that it failed', /^4 posthumous/, (room) => {
    room.says('fail');
    room.pass(100);
    write(room, 60);
  });
  // 15 s of evidence, 10 s on the way and a second for rounding: at 27 s it fires a second too late.
  sees('a timer that fires too late after the last evidence', /^3 .* fires 1000 ms after/, (room) => {
    room.beat();
    room.pass(27_000);
    room.arm(60);
  });

  it.each([
    [51_000, {}, 0],
    [53_000, {}, 1],
    [53_000, { onStale: 'expire' }, 0],
    [53_000, { faults: [fault({ kind: 'black-hole', atMs: 60_000 })] }, 0],
  ] as const)(
    'sees a timer of 20 s, renewed at %d ms, that no trip cut short: %j',
    (renewedMs, patch, findings) => {
      // Evidence until 55 s, 10 s on the way, 5 s of timer and a second for rounding.
      const markets = [market({ timeoutSeconds: 20 })];
      const room = createCourtroom(calm({ onStale: 'trip', faultyMs: 180_000, markets, ...patch }));
      room.pass(40_000);
      room.beat();
      room.pass(renewedMs - 40_000);
      room.arm(20);
      room.pass(66_000 - renewedMs);
      room.judge.onTurn(room.first());
      const late = room.findings().filter((finding) => finding.includes('did not cut it short'));
      expect(late).toHaveLength(findings);
    },
  );
});

describe('invariants 5 to 7, deletes: a judge', () => {
  sees('a delete that nobody asked for', /^5 .* nobody asked it to delete/, (room) => {
    room.beat();
    room.delete();
  });
  const keeps = { daemons: [daemon({ policy: 'keep' as const })] };
  const deletesInStop = (room: Room) => {
    room.beat();
    stops(room);
    room.delete();
  };
  sees('a delete under another policy', /^5 .* nobody asked it to delete/, deletesInStop, keeps);
  sees("a delete of a dead bot's timer, unless it said goodbye", /^5 .* of a dead bot/, (room) => {
    room.pass(30_000);
    stops(room);
    room.delete();
    room.says('goodbye');
    room.delete();
  });
  sees('a delete for a bot that was last heard before the stop', /^5 .* of a dead bot/, (room) => {
    room.beat();
    room.pass(1000);
    stops(room);
    room.delete();
  });
  for (const failsFirst of [true, false])
    sees(
      `a delete that leaves after its bot failed: ${failsFirst}`,
      failsFirst ? /^5 .* of a dead bot/ : [],
      (room) => {
        stops(room);
        room.beat();
        room.decided();
        const written = room.sent(null);
        if (failsFirst) room.says('fail');
        room.judge.onWrite(written);
        if (!failsFirst) room.says('fail');
        room.pass(300);
        room.delete(written);
      },
    );
  sees('a delete that left before its bot was heard in the stop', /^5 .* of a dead bot/, (room) => {
    room.beat();
    room.decided();
    room.pass(1000);
    stops(room);
    const written = write(room, null);
    room.beat();
    room.delete(written);
  });
  sees('a delete when nobody asks for it any more', /^5 .* nobody asks for now/, (room) => {
    room.beat();
    room.decided();
    asks(room, 'disarm', 'guard');
    // One that was on its way may still arrive.
    room.delete();
    write(room, null);
  });
  sees('a delete of a timer that this process never armed', /^5 .* never armed/, (room) => {
    room.beat();
    asks(room, 'disarm');
    write(room, null);
    room.decided();
    write(room, null);
  });
  sees('a delete of what another daemon renews', /^5 .* another daemon renews/, (room) => {
    room.beat();
    room.decided();
    room.judge.onMove(room.first(), 'M0_USDT', true);
    asks(room, 'disarm');
    write(room, null);
  });
  sees('a renewal that is carried out after the delete', /^6 .* carried out after its delete/, (room) => {
    room.beat();
    room.decided();
    stops(room);
    room.delete(write(room, null));
    room.arm(60);
  });
  sees('a renewal of what an operator took out of guard', /^6 .* guards no longer/, (room) => {
    room.beat();
    write(room, 60);
    asks(room, 'disarm');
    write(room, 60);
  });
  for (const [purpose, invariant] of [
    ['trip', '3'],
    ['delete', '6'],
  ] as const)
    sees(
      `in a nonce window a ${purpose} behind which a renewal may still arrive`,
      new RegExp(`^${invariant} .* wrote a ${purpose} while a renewal could still arrive`),
      (room) => {
        room.beat();
        room.decided();
        write(room, 60, { nth: 0 });
        room.pass(1000);
        asks(room, purpose === 'trip' ? 'trip' : 'disarm');
        room.decided(purpose);
        write(room, purpose === 'trip' ? 5 : null, { nth: 1 });
      },
      { nonce: 'window', onStale: 'trip' },
    );

  /** In a nonce window a renewal is carried out after the delete of a stop, so long after it was written. */
  const stoppedWith = (writtenBeforeMs: number, why: 'unconfirmed' | 'policy') => (room: Room) => {
    room.pass(10_000);
    room.beat();
    room.decided();
    const stray = write(room, 60);
    room.pass(writtenBeforeMs);
    stops(room);
    room.beat();
    room.delete(write(room, null));
    room.pass(1000);
    room.arm(60, stray);
    room.stopped([{ market: 'M0_USDT', firesByWallMs: 100_000, why }]);
  };
  const window = { nonce: 'window' } as const;
  const twice = [/^6 .* could still arrive behind it/, /^6 .* carried out after its delete/];
  sees('a stop that had the time to wait for a renewal', twice, stoppedWith(4000, 'unconfirmed'), window);
  sees('no wrong in one that had not', [], stoppedWith(2000, 'unconfirmed'), window);
  sees(
    'a failed delete that is called a policy',
    /^7 .* left on purpose/,
    stoppedWith(2000, 'policy'),
    window,
  );

  sees('a timer that the daemon left and did not name', /^7 .* without naming the timer/, (room) => {
    room.beat();
    room.arm(60);
    room.stopped();
  });
  sees('a timer that fires later than the daemon said', /^7 .* fires later than/, (room) => {
    room.beat();
    room.arm(60);
    room.stopped([{ market: 'M0_USDT', firesByWallMs: 50_000, why: 'unconfirmed' }]);
  });
  sees('a renewal after an end that named nothing, also in the next life', /^7 .* and one is/, (room) => {
    room.beat();
    const stray = room.sent(60);
    room.stopped();
    room.begin(0, 2);
    room.arm(60, stray);
  });
});

describe('invariant 8, lapses: a judge', () => {
  const firedOnce = (room: Room) => {
    room.renewed(60);
    room.fire(60);
  };
  sees(
    'a silent lapse whose new timer begins in the second in which the old one ended',
    /^8 .* nothing$/,
    (room) => {
      firedOnce(room);
      room.renewed(120);
    },
  );
  sees('one gap that is reported twice', /^8 .* reported one gap twice/, (room) => {
    firedOnce(room);
    room.lapsed('certain');
    room.lapsed('certain');
  });
  sees('a lapse called possible while nothing has armed the timer again', /^8 .* that is certain/, (room) => {
    firedOnce(room);
    room.lapsed('possible');
  });
  for (const besides of [false, true])
    sees(
      `a lapse called possible that stamps show, unless another renewal left in time: ${besides}`,
      besides ? [] : /^8 .* calls a lapse possible that is certain/,
      (room) => {
        write(room, 60);
        const ends = room.arm(60);
        room.pass(15);
        if (besides) write(room, 60);
        room.pass(5);
        room.renewed(ends);
        room.pass(45_000);
        room.fire(ends);
        room.pass(10_000);
        write(room, 60);
        room.arm(60);
        room.lapsed('possible');
      },
      // In this world nobody waits for a renewal.
      { watched: false, budgetRequests: 100 },
    );
  sees('a certain lapse of a timer that never fired', /^8 .* that never was/, (room) => {
    room.renewed(60);
    room.lapsed('certain');
  });
  sees('a certain lapse of a timer that nobody wanted', /^8 .* while nobody wanted the timer/, (room) => {
    room.renewed(60);
    room.believe({ armedUntilMs: 59_000 });
    room.notice({ kind: 'suspended', market: 'M0_USDT', why: 'bot_stale', firesByWallMs: null });
    room.fire(60);
    room.pass(1000);
    room.notice({ kind: 'resumed', market: 'M0_USDT' });
    room.lapsed('certain');
  });
});

describe('invariants 9 to 11: a judge', () => {
  const unwatched = { nonce: 'window', watched: false } as const;
  const usesTwice = (room: Room) => {
    for (const nonce of ['100', '100']) write(room, 60, { nonce });
  };
  sees('a nonce that is used twice', /^9 .* used 100 twice/, usesTwice, unwatched);

  it.each([
    [30_000, 10_000, 1],
    [10_000, 30_000, 0],
    [-1000, 10_000, 1],
    [10_000, -1000, 0],
    [-1000, -5000, 0],
    // What has lapsed waits for 5 s at most for what has more than half of its time.
    [-1000, 40_000, 0],
  ])(
    'sees a renewal of what lasts %d ms before that of what lasts %d ms: %d',
    (firstMs, secondMs, findings) => {
      const room = createCourtroom(calm({ markets: TWO }));
      for (const [name, slackMs] of [['M0_USDT', firstMs] as const, ['M1_USDT', secondMs] as const]) {
        room.decided('renew', 0, name);
        room.renewed(60, name);
        room.believe({ armedUntilMs: 30_000 + slackMs }, name);
      }
      room.pass(30_000);
      write(room, 60);
      const wrong = room.findings().filter((one) => /^11 .* before M1_USDT, which ends sooner$/.test(one));
      expect(wrong).toHaveLength(findings);
    },
  );

  const atTheEnd = [/^11 .* not armed at the exchange/, /^11 .* does not believe it armed/];
  sees('a market that is not armed at the end', atTheEnd, (room) => room.judge.onEnd());
  it.each([
    // The lifetime of the delete, a third of the timeout, and 15 s.
    [45_000, 30, false, 0],
    [45_500, 30, false, 1],
    [45_000, 30, true, 1],
    [45_000, 5000, false, 1],
  ])('sees a market not believed armed %d ms after a delete, budget %d, confirmed %j: %d', (...given) => {
    const [afterMs, budgetRequests, isConfirmed, findings] = given;
    const room = createCourtroom(calm({ nonce: 'window', budgetRequests }));
    room.pass(60_000);
    write(room, null);
    if (isConfirmed) room.notice({ kind: 'deleted', market: 'M0_USDT', durationMs: 0, mayHaveFired: false });
    room.pass(afterMs);
    room.arm(60);
    room.judge.onEnd();
    expect(room.findings().filter((one) => one.includes('does not believe'))).toHaveLength(findings);
  });
  sees('a world in which no daemon runs any more', /^11 progress: no daemon runs at the end/, (room) => {
    for (const one of room.running.keys()) room.running.delete(one);
    room.arm(60);
    room.judge.onEnd();
  });
});
