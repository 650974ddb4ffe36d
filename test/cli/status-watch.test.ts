import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { statusOf } from './sample-status.ts';
import { daemon, daemonAt, folder, refusalWith, run, start } from './stage.ts';

const SOON = { timeout: 15_000, interval: 20 };
const SCREEN = { columns: 100, rows: 20 };

/** What was drawn last, line by line and without the control sequences. */
const seenIn = (drawn: readonly string[]) => stripVTControlCharacters(drawn.at(-1) ?? '').split('\n');

/** The first line of everything that was drawn. */
const titlesIn = (drawn: readonly string[]) => drawn.map((frame) => seenIn([frame])[0]);

describe('status --watch', () => {
  it('redraws on a terminal until Ctrl-C, within the screen, and ends with 0', async () => {
    let seconds = 40;
    const markets = () =>
      Array.from({ length: 200 }, (_, index) => ({ market: `M${index}_USDT`, guaranteedMs: seconds * 1000 }));
    const { address } = await daemon(() => {
      seconds -= 1;
      return { json: statusOf(markets()) };
    });
    const watch = start(['status', '--watch', '--control', address], { terminal: SCREEN });
    await vi.waitFor(() => expect(watch.drawn.length).toBeGreaterThan(2), SOON);
    const lines = seenIn(watch.drawn);
    expect(lines.length).toBeLessThanOrEqual(SCREEN.rows);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(SCREEN.columns);
    expect(lines.join('\n')).toMatch(/M0_USDT +armed +█+░+ +3[0-7] s/);
    expect(lines.join('\n')).toMatch(/19\d more markets are left out/);
    expect(lines.join('\n')).toContain('A stop now (policy delete):');
    watch.signal('SIGINT');
    expect(await watch.ended).toBe(0);
    expect(watch.drawn.at(-1)).toContain('\u001b[?25h');
    expect(watch.err).toEqual([]);
  });

  it('writes a line per change where there is no terminal', async () => {
    const armed = { market: 'BTC_USDT' };
    const other = { market: 'ETH_USDT' };
    const expired = { ...armed, state: 'expired' as const, lapses: 1, lastProblem: 'HTTP 503' };
    const documents = [
      statusOf([armed, other]),
      statusOf([armed, other]),
      statusOf([expired, other], { ready: false, notReady: ['BTC_USDT is not confirmed armed (expired)'] }),
      statusOf([armed], {
        bots: [{ bot: 'main', mode: 'beat', state: 'stale', evidenceAgeMs: 20_000, ttlMs: 15_000 }],
      }),
    ];
    let looks = 0;
    const { address } = await daemon(() => ({ json: documents[Math.min(looks++, documents.length - 1)] }));
    const watch = start(['status', '--watch', '--control', address]);
    await vi.waitFor(() => expect(looks).toBeGreaterThan(4), SOON);
    watch.signal('SIGTERM');
    expect(await watch.ended).toBe(0);
    expect(watch.out.every((line) => /^\d{4}-\d\d-\d\dT[\d:.]+Z /.test(line))).toBe(true);
    expect(watch.out.map((line) => line.slice(line.indexOf(' ') + 1))).toEqual([
      'Ready. 2 markets: 2 armed.',
      'Not ready: BTC_USDT is not confirmed armed (expired).',
      'BTC_USDT: armed -> expired: HTTP 503',
      'BTC_USDT: lapsed, 1 lapse in all',
      'Ready.',
      'Removed: ETH_USDT.',
      'BTC_USDT: expired -> armed',
      'Bot main: alive -> stale',
    ]);
  });

  it('tells when nothing is guarded any more', async () => {
    const hold = { why: 'disarmed', untilWallMs: null } as const;
    const disarmed = { market: 'BTC_USDT', state: 'disarmed', wanted: false, hold } as const;
    let looks = 0;
    const { address } = await daemon(() => ({
      json: statusOf([looks++ === 0 ? { market: 'BTC_USDT' } : disarmed]),
    }));
    const watch = start(['status', '--watch', '--control', address]);
    await vi.waitFor(() => expect(watch.out).toHaveLength(3), SOON);
    watch.signal('SIGTERM');
    await watch.ended;
    expect(watch.out[1]).toMatch(/ Ready, but nothing is guarded: BTC_USDT is disarmed\.$/);
  });

  it('tells many markets that change alike in one line', async () => {
    const all = (state: 'armed' | 'expired') =>
      statusOf(Array.from({ length: 3000 }, (_, index) => ({ market: `M${index}_USDT`, state })));
    let looks = 0;
    const { address } = await daemon(() => ({ json: all(looks++ === 0 ? 'armed' : 'expired') }));
    const watch = start(['status', '--watch', '--control', address]);
    await vi.waitFor(() => expect(watch.out).toHaveLength(2), SOON);
    watch.signal('SIGINT');
    await watch.ended;
    expect(watch.out[1]).toMatch(/ 3,000 markets \(M0_USDT, .* and 2,995 more\): armed -> expired$/);
  });

  it('announces a daemon that is lost, goes on trying, and says when it answers again', async () => {
    const socket = join(folder(), 'control.sock');
    const first = await daemonAt({ socket }, () => ({ json: statusOf([{ market: 'BTC_USDT' }]) }));
    const lines = start(['status', '--watch', '--control', first.address]);
    const drawing = start(['status', '--watch', '--control', first.address], { terminal: SCREEN });
    await vi.waitFor(() => expect([lines.out.length, drawing.drawn.length > 0]).toEqual([1, true]), SOON);
    await first.close();
    await vi.waitFor(() => expect(lines.out).toHaveLength(2), SOON);
    expect(lines.out[1]).toMatch(/ Lost the daemon: no daemon at unix:.*; goes on trying\.$/);
    await vi.waitFor(
      () =>
        expect(titlesIn(drawing.drawn)).toContainEqual(expect.stringMatching(/^Lost the daemon [12] s ago/)),
      SOON,
    );
    expect(seenIn(drawing.drawn).join('\n')).toMatch(/BTC_USDT +armed/);
    await daemonAt({ socket }, () => ({ json: statusOf([{ market: 'BTC_USDT' }]) }));
    await vi.waitFor(() => expect(lines.out.at(-1)).toMatch(/ The daemon answers again\.$/), SOON);
    await vi.waitFor(() => expect(seenIn(drawing.drawn)[0]).toMatch(/^killswitchd/), SOON);
    expect(lines.out).toHaveLength(3);
    lines.signal('SIGINT');
    drawing.signal('SIGINT');
    expect([await lines.ended, await drawing.ended]).toEqual([0, 0]);
  });

  it('ends at once at Ctrl-C although the daemon hangs', async () => {
    let looks = 0;
    const { address } = await daemon(() => (looks++ === 0 ? { json: statusOf([]) } : () => {}));
    const watch = start(['status', '--watch', '--control', address]);
    await vi.waitFor(() => expect(looks).toBe(2), SOON);
    watch.signal('SIGINT');
    expect(await watch.ended).toBe(0);
    expect(watch.out).toHaveLength(1);
  });

  it('ends when nobody reads any more', async () => {
    const { address } = await daemon(() => ({ json: statusOf([]) }));
    const watch = start(['status', '--watch', '--json', '--control', address]);
    await vi.waitFor(() => expect(watch.out.length).toBeGreaterThan(1), SOON);
    expect(watch.out[1]).toBe(JSON.stringify(statusOf([])));
    watch.stopReading();
    expect(await watch.ended).toBe(0);
  });

  it('ends with 69 where there is no daemon to begin with, and with 77 where it refuses the token', async () => {
    const missing = await run(['status', '--watch', '--control', `unix:${join(folder(), 'none.sock')}`]);
    expect(missing).toMatchObject({ code: 69, out: [] });
    const { address } = await daemon(() => refusalWith(401, 'unauthorised', 'no token was shown'));
    expect((await run(['status', '--watch', '--control', address])).code).toBe(77);
  });

  it('shows either all markets or what fits the screen', async () => {
    const both = await run(['status', '--watch', '--all']);
    expect(both.code).toBe(64);
    expect(both.err.join('\n')).toContain("'--all' cannot be used with option '--watch'");
  });
});
