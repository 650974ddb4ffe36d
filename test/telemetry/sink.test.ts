import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createSink, type Write } from '../../src/telemetry/log.ts';

const clock = createSystemClock();

/** A sink in front of an output that takes as many of some bytes as `takes` says, or fails with that code. */
function sinkTo(takes: (bytes: Uint8Array) => number | string) {
  const seen = { out: '', dropped: 0, told: [] as number[] };
  const write: Write = (bytes, done) => {
    const taken = takes(bytes);
    if (typeof taken === 'number') seen.out += Buffer.from(bytes.subarray(0, taken)).toString();
    const failed = (code: string) => done(Object.assign(new Error(code), { code }), 0);
    setImmediate(() => (typeof taken === 'number' ? done(null, taken) : failed(taken)));
  };
  const onDrop = () => void (seen.dropped += 1);
  const onRoom = (lines: number) => void seen.told.push(lines);
  const sink = createSink({ clock, write, onDrop, onRoom });
  return { sink, seen };
}

test('lines come out whole and in order when the output takes them in pieces', async () => {
  const { sink, seen } = sinkTo(({ length }) => Math.min(3, length));
  for (const line of ['one\n', 'two\n', 'three\n']) sink.write(line);
  await sink.flush(1000);
  expect(seen.out).toBe('one\ntwo\nthree\n');
});

test.each(['ENOSPC', 'EAGAIN'])(
  'an output that fails with %s is tried again: what fitted in memory comes out, and how much did not is told',
  async (code) => {
    let isFull = true;
    const { sink, seen } = sinkTo(({ length }) => (isFull ? code : length));
    const long = `${'x'.repeat(2 ** 19 - 1)}\n`;
    for (const line of ['one\n', long, long, 'lost\n']) sink.write(line);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sink.isFailing()).toBe(true);
    isFull = false;
    await sink.flush(5000);
    expect(seen).toEqual({ out: `one\n${long}${long}`, dropped: 1, told: [1] });
    expect(sink.isFailing()).toBe(false);
  },
);

// That a process goes on and ends whose output nobody reads, or that was closed: `test/process/hang.test.ts`.
test('an output that is gone drops everything after', async () => {
  const { sink, seen } = sinkTo(() => 'EPIPE');
  sink.write('one\n');
  await sink.flush(1000);
  sink.write('two\n');
  expect(seen.dropped).toBe(1);
});
