import { describe, expect, it } from 'vitest';
import { createBook } from './book.ts';
import { carriedOf } from './serial.ts';
import { judgeTargets } from './targets.ts';

describe('requests one after the other', () => {
  it('are a share of what the injected round trip allows, and another of what was really held', () => {
    // 400 a second at 1 ms, each answer held for 2 ms by the timer of the exchange.
    const { perSecond, ofInjected, ofHeld } = carriedOf({ renewals: 4000, heldMs: 8000 }, 10_000, 1);
    expect(perSecond).toBeCloseTo(400, 6);
    expect(ofInjected).toBeCloseTo(40, 6);
    expect(ofHeld).toBeCloseTo(80, 6);
  });

  it('are judged by the injected round trip', () => {
    const book = createBook();
    const style = { title: 'Share', unit: '%' };
    book.note('serial/1', style, 'daemon', 40);
    book.note('serial-held/1', style, 'daemon', 99);
    const says = 'serial: >= 95 % of 1/injected round trip at 1 ms';
    expect(judgeTargets(book)).toContainEqual({ says, measured: '40.0 %', met: false });
  });
});
