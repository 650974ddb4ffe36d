import { describe, expect, it } from 'vitest';
import { calm } from './calm.ts';
import { createCourtroom } from './courtroom.ts';

const DAEMON = 'daemon 0 (life 1)';

describe('in a nonce window a judge sees', () => {
  function room(nonce: 'window' | 'increasing' = 'window') {
    const opened = createCourtroom(calm({ nonce, onStale: 'trip' }));
    opened.beat();
    opened.decided();
    const renewal = opened.sent(60, { nth: 0 });
    opened.judge.onWrite(renewal);
    opened.pass(1000);
    return { ...opened, renewal };
  }
  /** The daemon decides on a trip or a delete, and writes it. */
  function end({ decided, judge, sent, first }: ReturnType<typeof room>, purpose: 'trip' | 'delete') {
    judge.onIntent(first(), 'M0_USDT', purpose === 'trip' ? 'trip' : 'disarm');
    decided(purpose);
    judge.onWrite(sent(purpose === 'trip' ? 5 : null, { nth: 1 }));
  }

  it('a delete, or a trip, behind which a renewal may still arrive', () => {
    for (const purpose of ['trip', 'delete'] as const) {
      const opened = room();
      end(opened, purpose);
      expect(opened.findings()).toEqual([
        `${purpose === 'trip' ? '3 bounded kill' : '6 nothing after delete'}: M0_USDT: ${DAEMON} wrote a ${purpose} while a renewal could still arrive behind it`,
      ]);
    }
  });

  it('nothing wrong once the renewal has arrived, or is too old, or where nonces rise', () => {
    const arrived = room();
    arrived.judge.onArrival(arrived.renewal);
    end(arrived, 'delete');
    const old = room();
    old.pass(9000);
    end(old, 'delete');
    const rising = room('increasing');
    end(rising, 'delete');
    for (const { findings } of [arrived, old, rising]) expect(findings()).toEqual([]);
  });
});

it('a judge sees a renewal of what an operator took out of guard', () => {
  const room = createCourtroom(calm());
  room.beat();
  room.judge.onWrite(room.sent(60));
  room.judge.onIntent(room.first(), 'M0_USDT', 'disarm');
  room.judge.onWrite(room.sent(60));
  expect(room.findings()).toEqual([
    `6 nothing after delete: M0_USDT: ${DAEMON} renewed what it guards no longer`,
  ]);
});
