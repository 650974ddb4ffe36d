import { spawn } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createSink, type Write } from '../../src/telemetry/log.ts';

const clock = createSystemClock();

function broken(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

/** Runs a program whose standard output is a pipe that nobody reads, or that was closed. */
async function runWithOutput(output: 'unread' | 'closed'): Promise<{ code: number | null; report: string }> {
  const [log, descriptors] = ['log', 'output'].map(
    (name) => new URL(`../../src/telemetry/${name}.ts`, import.meta.url).href,
  );
  const realClock = new URL('../../src/clock.ts', import.meta.url).href;
  const program = `
    const { createSink, writerTo } = await import(${JSON.stringify(log)});
    const { openStdout } = await import(${JSON.stringify(descriptors)});
    const { createSystemClock } = await import(${JSON.stringify(realClock)});
    let dropped = 0, ticks = 0;
    const sink = createSink({ clock: createSystemClock(), write: writerTo(openStdout()), onDrop: () => { dropped += 1; } });
    const ticker = setInterval(() => {
      for (let line = 0; line < 200; line += 1) sink.write('y'.repeat(1000) + '\\n');
      if (++ticks < 20) return;
      clearInterval(ticker);
      sink.flush(200).then(() => console.error(JSON.stringify({ ticks, dropped })));
    }, 5);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (output === 'closed') child.stdout.destroy();
  let report = '';
  child.stderr.on('data', (data) => {
    report += String(data);
  });
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  child.stdout.destroy();
  return { code, report };
}

describe('log output', () => {
  test('lines come out whole and in order when the output takes them in pieces', async () => {
    let out = '';
    const piecemeal: Write = (bytes, done) => {
      out += Buffer.from(bytes.subarray(0, 3)).toString();
      setImmediate(() => done(null, Math.min(3, bytes.length)));
    };
    const sink = createSink({ clock, write: piecemeal, onDrop: () => {} });
    for (const line of ['one\n', 'two\n', 'three\n']) sink.write(line);
    await sink.flush(1000);
    expect(out).toBe('one\ntwo\nthree\n');
  });

  test('a full pipe is tried again', async () => {
    let tries = 0;
    let out = '';
    const full: Write = (bytes, done) => {
      tries += 1;
      const takes = tries > 2;
      if (takes) out += Buffer.from(bytes).toString();
      setImmediate(() => (takes ? done(null, bytes.length) : done(broken('EAGAIN'), 0)));
    };
    const sink = createSink({ clock, write: full, onDrop: () => {} });
    sink.write('one\n');
    await sink.flush(5000);
    expect(out).toBe('one\n');
  });

  test('an output that never takes anything drops what does not fit and counts it', async () => {
    let dropped = 0;
    const stuck: Write = () => {};
    const sink = createSink({ clock, write: stuck, onDrop: () => (dropped += 1), limitChars: 100 });
    for (let line = 0; line < 100; line += 1) sink.write('123456789\n');
    expect(dropped).toBe(100 - 1 - 10);
    await sink.flush(10);
    expect(dropped).toBe(99);
  });

  test('an output that fails is tried again: what fitted in memory comes out, and how much did not is told', async () => {
    let isFull = true;
    let out = '';
    const disk: Write = (bytes, done) => {
      if (!isFull) out += Buffer.from(bytes).toString();
      setImmediate(() => (isFull ? done(broken('ENOSPC'), 0) : done(null, bytes.length)));
    };
    const told: number[] = [];
    const options = { clock, write: disk, onDrop: () => {}, onRoom: (lines: number) => told.push(lines) };
    const sink = createSink({ ...options, limitChars: 8 });
    for (const line of ['one\n', 'two\n', 'six\n', 'lost\n']) sink.write(line);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sink.isFailing()).toBe(true);
    isFull = false;
    await sink.flush(5000);
    expect(out).toBe('one\ntwo\nsix\n');
    expect(told).toEqual([1]);
    expect(sink.isFailing()).toBe(false);
  });

  test('an output that is gone drops everything after', async () => {
    let dropped = 0;
    const gone: Write = (_, done) => void setImmediate(() => done(broken('EPIPE'), 0));
    const sink = createSink({ clock, write: gone, onDrop: () => (dropped += 1) });
    sink.write('one\n');
    await sink.flush(1000);
    sink.write('two\n');
    await sink.flush(1000);
    expect(dropped).toBe(1);
  });

  test.each(['unread', 'closed'] as const)(
    'a process whose output is %s goes on and can exit',
    async (output) => {
      const { code, report } = await runWithOutput(output);
      expect(code, report).toBe(0);
      const { ticks, dropped } = JSON.parse(report);
      expect(ticks).toBe(20);
      expect(dropped).toBeGreaterThan(0);
    },
  );
});
