import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createSink, type Write } from '../../src/telemetry/log.ts';

const clock = createSystemClock();

/** Runs a program whose standard output is a pipe that nobody reads, or that was closed. */
async function runWithOutput(output: string) {
  const of = (file: string) => JSON.stringify(new URL(`../../src/${file}.ts`, import.meta.url).href);
  const program = `
    const { createSink, writerTo } = await import(${of('telemetry/log')});
    const { openStdout } = await import(${of('telemetry/output')});
    const { createSystemClock } = await import(${of('clock')});
    let dropped = 0, ticks = 0;
    const sink = createSink({ clock: createSystemClock(), write: writerTo(openStdout()), onDrop: () => { dropped += 1; } });
    const ticker = setInterval(() => {
      for (let line = 0; line < 200; line += 1) sink.write('y'.repeat(1000) + '\\n');
      if (++ticks < 20) return;
      clearInterval(ticker);
      sink.flush(200).then(() => console.error(JSON.stringify({ ticks, dropped })));
    }, 5);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program]);
  if (output === 'closed') child.stdout.destroy();
  const [report, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  child.stdout.destroy();
  return { code, report };
}

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

test('an output that is gone drops everything after', async () => {
  const { sink, seen } = sinkTo(() => 'EPIPE');
  sink.write('one\n');
  await sink.flush(1000);
  sink.write('two\n');
  expect(seen.dropped).toBe(1);
});

test.each(['unread', 'closed'])('a process whose output is %s goes on and can exit', async (output) => {
  const { code, report } = await runWithOutput(output);
  expect(code, report).toBe(0);
  const { ticks, dropped } = JSON.parse(report);
  expect(ticks).toBe(20);
  expect(dropped).toBeGreaterThan(0);
});
