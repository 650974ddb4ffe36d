import { describe, expect, it } from 'vitest';
import { createRequestCounter } from './requests.ts';

describe('the most requests in any 10 s', () => {
  it('are those of the fullest 10 s, wherever they lie', () => {
    const counter = createRequestCounter();
    for (const atMs of [0, 9000, 9500, 10_000, 18_900, 30_000]) counter.count(atMs);
    expect(counter.most()).toBe(4);
  });

  it('are counted anew for the next subject', () => {
    const counter = createRequestCounter();
    for (const atMs of [0, 1, 2]) counter.count(atMs);
    counter.forget();
    counter.count(3);
    expect(counter.most()).toBe(1);
  });
});
