import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { MarketSnapshot } from '../../src/core/view.ts';
import { sayTime } from '../../src/operator/page-words.ts';
import { sampleBot } from '../operator/sample-snapshot.ts';
import { start as startWeb } from '../operator/web-fixture.ts';
import { inMs, statusOf } from './sample-status.ts';
import { daemon, daemonAt, fileWith, folder, refusalWith, run, type Setting, start } from './stage.ts';

const BTC = { market: 'BTC_USDT', bot: 'main' };
const WIDE = { columns: 200, rows: 50 };
const SOON = { timeout: 15_000, interval: 20 };
const DEAD = [sampleBot({ state: 'stale', evidenceAgeMs: 25_000 })];

async function show(document: object, args: readonly string[] = [], setting: Setting = {}) {
  const { address } = await daemon(() => ({ json: document }));
  return run(['status', '--control', address, ...args], setting);
}

/** The line of a market, with single spaces. */
const lineOf = (lines: readonly string[], market: string) =>
  lines.find((line) => line.startsWith(`${market} `))?.replace(/ +/g, ' ');

describe('status', () => {
  it('tells what the daemon is, how every market is, and what a stop would do', async () => {
    const { out, err, code } = await show(statusOf([BTC]));
    expect({ code, err }).toEqual({ code: 0, err: [] });
    expect(out[0]).toMatch(/^killswitchd 1\.2\.3, up 2 h 5 min, at unix:\/.*control\.sock$/);
    expect(out.slice(1)).toEqual([
      'The timer is armed. Nothing needs attention.',
      'Ready',
      'Exchange http://127.0.0.1:1: up, ping 12 ms',
      '1 market: 1 armed',
      '',
      'MARKET    STATE  LEFT  TIMEOUT  EVERY  SLACK  BOT   LAPSES  FAILED',
      'BTC_USDT  armed  55 s     60 s    6 s   87 %  main       0       1',
      '',
      'A stop now (policy delete):',
      '  deletes the timer: the orders stay: BTC_USDT',
    ]);
  });

  it('says by when the orders of a dead bot are cancelled', async () => {
    const firesByWallMs = inMs(19_000);
    const suspended = { ...BTC, state: 'suspended', wanted: false, firesByWallMs } as const;
    const { out } = await show(statusOf([suspended], { bots: DEAD }));
    const at = sayTime(firesByWallMs / 1000);
    expect(out[1]).toContain(`Orders of BTC_USDT are cancelled by ${at}: the bot main is silent.`);
    expect(out[2]).toBe('Not ready: the bot main is silent: its timers are not renewed');
    const line = new RegExp(`suspended 19 s .* main silent .* orders are cancelled by ${at}$`);
    expect(lineOf(out, 'BTC_USDT')).toMatch(line);
  });

  it('promises no cancellation of a timer that nobody knows of, or that is being deleted', async () => {
    const firesByWallMs = inMs(19_000);
    const at = sayTime(firesByWallMs / 1000);
    const none = { wanted: false, guaranteedMs: null, firesByWallMs } as const;
    const suspended = { ...BTC, ...none, state: 'suspended', timer: 'unconfirmed' } as const;
    const { out } = await show(statusOf([suspended], { bots: DEAD }));
    const mayFire = `one that may still run fires by ${at}, else the orders stay`;
    expect(out[1]).toMatch(`No timer of BTC_USDT is confirmed; ${mayFire}. `);
    expect(lineOf(out, 'BTC_USDT')).toMatch(new RegExp(`suspended – .* no timer is confirmed; ${mayFire}$`));
    const hold = { why: 'disarmed', untilWallMs: null } as const;
    const disarmed = { ...BTC, ...none, hold, state: 'disarmed', timer: 'deleting' } as const;
    const deleting = (await show(statusOf([disarmed]))).out;
    const unless = `cancelled by ${at} unless the delete is confirmed before`;
    expect(deleting[1]).toMatch(`Orders of BTC_USDT are ${unless}. `);
    expect(lineOf(deleting, 'BTC_USDT')).toContain(`orders are ${unless}; disarmed until it is armed`);
  });

  it('says what the silence of a bot means for markets without a timer, and what comes before that', async () => {
    const none = { ...BTC, wanted: false, timer: 'none', guaranteedMs: null, firesByWallMs: null } as const;
    const hold = { why: 'paused', untilWallMs: inMs(60_000) } as const;
    const bare = (await show(statusOf([{ ...none, state: 'suspended' }], { bots: DEAD }))).out;
    expect(bare[1]).toMatch(/^The bot main is silent: no timer guards its orders\. /);
    expect(lineOf(bare, 'BTC_USDT')).toMatch(/ no timer guards its orders until its bot is heard$/);
    const paused = (await show(statusOf([{ ...none, state: 'paused', hold }], { bots: DEAD }))).out;
    expect(lineOf(paused, 'BTC_USDT')).toMatch(/paused until .*, then armed again once its bot is heard$/);
    const graceEndsWallMs = inMs(12_000);
    const bots = [sampleBot({ state: 'starting', evidenceAgeMs: null, graceEndsWallMs })];
    const from = sayTime(graceEndsWallMs / 1000);
    const { out } = await show(statusOf([BTC], { bots }));
    expect(out[1]).toBe(
      `The bot main is not heard yet: without a sign of life its timers are not renewed from ${from} on, and fire. The timer is armed.`,
    );
  });

  it('says until when a stop lasts, and how many timers are deleted', async () => {
    const deleted = { ...BTC, state: 'deleted', timer: 'none', wanted: false, firesByWallMs: null } as const;
    const left = { market: 'ETH_USDT', wanted: false, timer: 'deleting' } as const;
    const phase = { phase: 'stopping', stopEndsWallMs: inMs(8000) } as const;
    const { out } = await show(statusOf([deleted, left], phase));
    const until = `until ${sayTime(inMs(8000) / 1000)} at the latest`;
    expect(out[1]).toMatch(
      `The daemon is stopping, ${until}: 1 timer is deleted, 1 may still fire. Orders of`,
    );
  });

  it('keeps saying whose orders were cancelled, when and why, how to acknowledge it, and what only may have been', async () => {
    const byWallMs = inMs(-60_000);
    const at = sayTime(byWallMs / 1000);
    const why = { certainty: 'certain', why: 'bot_stale' } as const;
    const certain = { market: 'BTC_USDT', ...why, byWallMs, count: 1 };
    const possible = { certainty: 'possible', why: 'deleted_late', byWallMs, count: 2 } as const;
    const perhaps = Array.from({ length: 8 }, (_, index) => ({ ...possible, market: `M${index}_USDT` }));
    const { out } = await show(statusOf([BTC], {}, [certain, ...perhaps]));
    const lines = [
      `Orders of BTC_USDT were cancelled by ${at}: its bot was silent`,
      `Orders of M0_USDT may have been cancelled by ${at}: its timer may have fired before it was deleted (2 times)`,
      '  and 4 more markets',
      'Check the orders, then: killswitchd ack (without control.listen: restart the daemon)',
    ];
    expect(out).toEqual(expect.arrayContaining(lines));
    const unsure = await show(statusOf([BTC], {}, perhaps));
    expect(unsure.out.join('\n')).not.toMatch(/(?:were|are) cancelled/);
  });

  it('says why it is not ready, what is wrong with the exchange, and what is the matter with each market', async () => {
    const paused = { why: 'paused', untilWallMs: inMs(540_000) } as const;
    const tripped = { why: 'tripped', untilWallMs: null } as const;
    const none = { guaranteedMs: null, firesByWallMs: null, wanted: false };
    const expired = { guaranteedMs: -200, firesByWallMs: inMs(-1), lapses: 2, lastProblem: 'HTTP 503' };
    const refused = { guaranteedMs: null, lastProblem: 'HTTP 422', retryWallMs: inMs(40_000) };
    const leaving = { bot: 'quiet', guaranteedMs: null, lastSlackRatio: null, leaving: true };
    const markets = [
      { ...BTC, state: 'expired', ...expired },
      { market: 'ETH_USDT', state: 'paused', ...none, hold: paused },
      { market: 'SOL_USDT', state: 'disarmed', wanted: false, hold: tripped },
      { market: 'XRP_USDT', state: 'arming', timer: 'unconfirmed', ...leaving },
      { market: 'OLD_USDT', state: 'rejected', ...refused },
    ] as const;
    const problem = { pingMs: null, lastProblem: 'ECONNREFUSED', used: true, outage: true };
    const bases = [{ url: 'http://127.0.0.1:1', up: false, ...problem }];
    const notReady = ['one reason', 'another', 'a third', 'a fourth', 'a fifth'];
    const { out, code } = await show(statusOf(markets, { notReady, bases }));
    expect(code).toBe(0);
    expect(out.slice(2, 8)).toEqual([
      'Not ready: one reason',
      '  another',
      '  a third',
      '  and 2 more reasons',
      'Exchange http://127.0.0.1:1: outage: ECONNREFUSED',
      '5 markets: 1 expired, 1 paused, 1 disarmed, 1 arming, 1 rejected',
    ]);
    expect(lineOf(out, 'BTC_USDT')).toBe('BTC_USDT expired 0 s 60 s 6 s 87 % main 2 1 HTTP 503');
    expect(lineOf(out, 'ETH_USDT')).toMatch(/^ETH_USDT paused – /);
    expect(lineOf(out, 'ETH_USDT')).toContain(`paused until ${sayTime(inMs(540_000) / 1000)}`);
    expect(lineOf(out, 'SOL_USDT')).toMatch(/tripped until it is armed$/);
    expect(lineOf(out, 'XRP_USDT')).toBe('XRP_USDT arming – 60 s 6 s - quiet 0 1 no longer configured');
    const again = sayTime(inMs(40_000) / 1000);
    expect(lineOf(out, 'OLD_USDT')).toMatch(new RegExp(`HTTP 422; tried again at ${again}$`));
  });

  it('shows the worst of two thousand markets first and says how many it leaves out', async () => {
    const ill: Readonly<Record<number, Partial<MarketSnapshot>>> = {
      1900: { state: 'retrying', guaranteedMs: 9000 },
      1901: { state: 'retrying', guaranteedMs: 3000 },
      1999: { state: 'expired' },
    };
    const markets = Array.from({ length: 2000 }, (_, n) => ({ market: `M${n}_USDT`, ...ill[n] }));
    const { out } = await show(statusOf(markets));
    const first = out.findIndex((line) => line.startsWith('MARKET'));
    const worst = out.slice(first + 1, first + 5).map((line) => line.split(' ')[0]);
    expect(worst).toEqual(['M1999_USDT', 'M1901_USDT', 'M1900_USDT', 'M0_USDT']);
    expect(out).toContain('1,960 more markets are left out, in no worse state than these; --all shows them.');
    expect(out.at(-1)).toMatch(/: 2,000 markets \(M0_USDT, .* and 1,995 more\)$/);
    const all = await show(statusOf(markets), ['--all']);
    expect(all.out.filter((line) => /^M\d+_USDT /.test(line))).toHaveLength(2000);
  });

  it('has colours on a terminal, and none with NO_COLOR or elsewhere', async () => {
    const shown = async (setting: Setting) => (await show(statusOf([BTC]), [], setting)).out.join('\n');
    expect(await shown({ terminal: WIDE })).toContain('\u001b[32marmed\u001b[0m');
    for (const plain of [{ terminal: WIDE, env: { NO_COLOR: '1' } }, {}])
      expect(await shown(plain)).not.toContain('\u001b');
  });

  it.each([40, 60, 100])('fits its table into %i columns, and keeps what matters most', async (columns) => {
    const lastProblem = 'a long tale of what came back from the exchange instead of a timer';
    const long = { market: 'A_VERY_LONG_NAME_USDT' };
    const document = statusOf([{ ...BTC, state: 'retrying', lastProblem }, long]);
    const { out } = await show(document, [], { terminal: { columns, rows: 24 }, env: { NO_COLOR: '1' } });
    const first = out.findIndex((line) => line.startsWith('MARKET'));
    const table = out.slice(first, first + 3);
    expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(table[0]).toMatch(/MARKET +STATE.* LEFT/);
    expect(table[1]).toMatch(/BTC_USDT +retrying .*55 s/);
    if (columns >= 60) expect(table[1]).toMatch(/a long.*…$/);
  });

  it('--json prints the document as it came, from whichever listener answers', async () => {
    const document = { ...statusOf([BTC]), somethingNew: { from: 'a later version' } };
    expect(await show(document, ['--json'])).toMatchObject({ code: 0, out: [JSON.stringify(document)] });
    const { host } = new URL((await startWeb()).addresses[0] ?? '');
    const byWeb = await run(['status', '--json'], { env: { KILLSWITCHD_WEB_LISTEN: host } });
    expect(byWeb.code).toBe(0);
    expect(JSON.parse(byWeb.out[0] ?? '')).toMatchObject({ schemaVersion: 1, version: '1.2.3' });
  });

  it('lets no text of the exchange steer the terminal', async () => {
    const problem = 'gone\u001b[2J\u001b]0;owned\u0007\nBTC_USDT  armed \u202e';
    const document = statusOf([{ ...BTC, state: 'retrying', lastProblem: problem }]);
    const { out } = await show(document, [], { terminal: WIDE, env: { NO_COLOR: '1' } });
    expect(out.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(out.join('\n')).toContain('gone [2J ]0;owned BTC_USDT  armed');
  });
});

describe('status --watch', () => {
  it('redraws on a terminal until Ctrl-C, within the screen, and ends with 0', async () => {
    const document = statusOf(Array.from({ length: 200 }, (_, index) => ({ market: `M${index}_USDT` })));
    const { address } = await daemon(() => ({ json: document }));
    const screen = { columns: 100, rows: 20 };
    const watch = start(['status', '--watch', '--control', address], { terminal: screen });
    await vi.waitFor(() => expect(watch.drawn.length).toBeGreaterThan(1), SOON);
    const lines = stripVTControlCharacters(watch.drawn.at(-1) ?? '').split('\n');
    expect(lines.length).toBeLessThanOrEqual(screen.rows);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(screen.columns);
    expect(lines.join('\n')).toMatch(/M0_USDT +armed[^]*19\d more markets are left out[^]*A stop now/);
    watch.signal('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  it('writes a line per change where there is no terminal, and says when the daemon is lost and back', async () => {
    const socket = join(folder(), 'control.sock');
    const other = { market: 'ETH_USDT' };
    const expired = { ...BTC, state: 'expired' as const, guaranteedMs: -1, lastProblem: 'HTTP 503' };
    const gone = {
      market: BTC.market,
      certainty: 'certain',
      why: 'unrenewed',
      byWallMs: inMs(-1),
      count: 1,
    } as const;
    const documents = [
      statusOf([BTC, other]),
      statusOf([expired, other], {}, [gone]),
      statusOf([BTC], { bots: DEAD }),
    ];
    let looks = 0;
    const first = await daemonAt({ socket }, () => ({ json: documents[Math.min(looks++, 2)] }));
    const watch = start(['status', '--watch', '--control', `unix:${socket}`]);
    const said = () => watch.out.map((line) => line.slice(line.indexOf(' ') + 1));
    await vi.waitFor(() => expect(said()).toContain('Bot main: silent'), SOON);
    await first.close();
    await vi.waitFor(() => expect(said().join('\n')).toMatch(/Lost the daemon: .*goes on trying/), SOON);
    await daemonAt({ socket }, () => ({ json: documents[0] }));
    await vi.waitFor(() => expect(said()).toContain('The daemon answers again.'), SOON);
    watch.signal('SIGTERM');
    expect(await watch.ended).toBe(0);
    expect(watch.out.every((line) => /^\d{4}-\d\d-\d\dT[\d:.]+Z /.test(line))).toBe(true);
    expect(said().filter((line) => line.startsWith('Orders of BTC_USDT were cancelled'))).toHaveLength(1);
    const ofMarkets = said().filter((line) => line.includes('_USDT: '));
    expect(ofMarkets.slice(0, 5)).toEqual([
      'BTC_USDT: armed',
      'ETH_USDT: armed',
      'BTC_USDT: expired: HTTP 503',
      'BTC_USDT: armed',
      'ETH_USDT: no longer there',
    ]);
  });

  it('finds a daemon again whose token is another one by now', async () => {
    let token = 'the-first-token-of-all';
    const tokenFile = fileWith(token);
    const { address } = await daemonAt({ tcp: true }, ({ headers }) =>
      headers.authorization === `Bearer ${token}`
        ? { json: statusOf([BTC]) }
        : refusalWith(401, 'unauthorised', 'no'),
    );
    const watch = start(['status', '--watch', '--control', address, '--token-file', tokenFile]);
    const said = () => watch.out.join('\n');
    await vi.waitFor(() => expect(said()).toContain('BTC_USDT: armed'), SOON);
    token = 'another-token-after-it';
    await vi.waitFor(() => expect(said()).toMatch(/Lost the daemon: .*token/), SOON);
    writeFileSync(tokenFile, token);
    await vi.waitFor(() => expect(said()).toContain('The daemon answers again.'), SOON);
    watch.signal('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  it('ends at once at Ctrl-C although the daemon hangs, and when nobody reads any more', async () => {
    const hangs = await daemon(() => () => {});
    const watch = start(['status', '--watch', '--control', hangs.address]);
    await vi.waitFor(() => expect(hangs.asked).toHaveLength(1), SOON);
    watch.signal('SIGINT');
    expect(await watch.ended).toBe(0);
    const { address } = await daemon(() => ({ json: statusOf([BTC]) }));
    const reader = start(['status', '--watch', '--json', '--control', address]);
    await vi.waitFor(() => expect(reader.out.length).toBeGreaterThan(0), SOON);
    reader.stopReading();
    expect(await reader.ended).toBe(0);
  });

  it('ends with 69 where there is no daemon to begin with, with 77 where it refuses the token, with 64 beside --all', async () => {
    const { address } = await daemon(() => refusalWith(401, 'unauthorised', 'no'));
    const end = async (...flags: string[]) => (await run(['status', '--watch', '--control', ...flags])).code;
    expect(await end(`unix:${join(folder(), 'none.sock')}`)).toBe(69);
    expect(await end(address)).toBe(77);
    expect(await end(address, '--all')).toBe(64);
  });
});
