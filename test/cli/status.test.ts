import { describe, expect, it } from 'vitest';
import type { StatusDocument } from '../../src/operator/status.ts';
import { inMs, statusOf } from './sample-status.ts';
import { daemon, run, type Setting } from './stage.ts';

const BTC = { market: 'BTC_USDT', bot: 'main' };
const WIDE = { columns: 200, rows: 50 };

async function show(document: StatusDocument | object, args: readonly string[] = [], setting: Setting = {}) {
  const { address } = await daemon(() => ({ json: document }));
  return run(['status', '--control', address, ...args], setting);
}

/** The line of a market, with single spaces. */
const lineOf = (lines: readonly string[], market: string) =>
  lines.find((line) => line.startsWith(`${market} `))?.replace(/ +/g, ' ');

describe('status', () => {
  it('tells what the daemon is, how every market is, and what a stop would do', async () => {
    const { out, err, code } = await show(statusOf([BTC]));
    expect(code).toBe(0);
    expect(err).toEqual([]);
    expect(out[0]).toMatch(/^killswitchd 1\.2\.3, up 2 h 5 min, at unix:\/.*control\.sock$/);
    expect(out.slice(1)).toEqual([
      'Ready: every wanted market is confirmed armed.',
      'Exchange http://127.0.0.1:1: up, ping 12 ms',
      '1 market: 1 armed',
      '',
      'MARKET    STATE  LEFT  TIMEOUT  EVERY  SLACK  BOT             LAPSES  FAILED',
      'BTC_USDT  armed  54 s     60 s    6 s   87 %  main 1.2 s ago       0       1',
      '',
      'A stop now (policy delete):',
      '  deletes the timer: the orders stay: BTC_USDT',
    ]);
  });

  it('says so where nothing is guarded', async () => {
    const disarmed = {
      ...BTC,
      state: 'disarmed',
      wanted: false,
      guaranteedMs: null,
      hold: { why: 'disarmed', untilWallMs: null },
    } as const;
    const { out, code } = await show(statusOf([disarmed, { ...disarmed, market: 'ETH_USDT' }]));
    expect(code).toBe(0);
    expect(out[1]).toBe('Ready, but nothing is guarded: all 2 markets are disarmed.');
  });

  it('says why it is not ready, what is wrong with the exchange, and what is the matter with each market', async () => {
    const { out, code } = await show(
      statusOf(
        [
          { ...BTC, state: 'expired', guaranteedMs: -200, lapses: 2, lastProblem: 'HTTP 503 with 163 bytes' },
          {
            market: 'ETH_USDT',
            bot: 'main',
            state: 'paused',
            hold: { why: 'paused', untilWallMs: inMs(540_000) },
          },
          { market: 'SOL_USDT', bot: 'main', state: 'disarmed', hold: { why: 'tripped', untilWallMs: null } },
          {
            market: 'XRP_USDT',
            bot: 'quiet',
            state: 'arming',
            guaranteedMs: null,
            lastSlackRatio: null,
            leaving: true,
          },
        ],
        {
          ready: false,
          notReady: ['one reason', 'another', 'a third', 'a fourth', 'a fifth'],
          bases: [
            { url: 'http://127.0.0.1:1', up: false, pingMs: null, lastProblem: 'ECONNREFUSED', outage: true },
          ],
          bots: [
            { bot: 'main', mode: 'beat', state: 'stale', evidenceAgeMs: 25_000, ttlMs: 15_000 },
            { bot: 'quiet', mode: 'none', state: 'alive', evidenceAgeMs: null, ttlMs: null },
          ],
        },
      ),
    );
    expect(code).toBe(0);
    expect(out.slice(1, 7)).toEqual([
      'Not ready: one reason',
      '  another',
      '  a third',
      '  and 2 more reasons',
      'Exchange http://127.0.0.1:1: outage: ECONNREFUSED',
      '4 markets: 1 expired, 1 paused, 1 disarmed, 1 arming',
    ]);
    expect(lineOf(out, 'BTC_USDT')).toBe(
      'BTC_USDT expired 0 s 60 s 6 s 87 % main stale, 25 s ago 2 1 HTTP 503 with 163 bytes',
    );
    expect(lineOf(out, 'ETH_USDT')).toMatch(/paused for another 9 min$/);
    expect(lineOf(out, 'SOL_USDT')).toMatch(/tripped until it is armed$/);
    expect(lineOf(out, 'XRP_USDT')).toBe(
      'XRP_USDT arming - 60 s 6 s - quiet not watched 0 1 no longer configured',
    );
  });

  it('shows the worst of ten thousand markets first and says how many it leaves out', async () => {
    const markets = Array.from({ length: 10_000 }, (_, index) => ({ market: `M${index}_USDT` }));
    const sick = markets.map((market, index) => {
      if (index === 9000) return { ...market, state: 'retrying' as const, guaranteedMs: 9000 };
      if (index === 9001) return { ...market, state: 'retrying' as const, guaranteedMs: 3000 };
      if (index === 9999) return { ...market, state: 'expired' as const };
      return index === 5000 ? { ...market, lapses: 1 } : market;
    });
    const { out } = await show(statusOf(sick));
    const first = out.findIndex((line) => line.startsWith('MARKET'));
    expect(out.slice(first + 1, first + 6).map((line) => line.split(' ')[0])).toEqual([
      'M9999_USDT',
      'M9001_USDT',
      'M9000_USDT',
      'M5000_USDT',
      'M0_USDT',
    ]);
    expect(out).toContain('10,000 markets: 9,997 armed, 2 retrying, 1 expired');
    expect(out).toContain('9,960 more markets are left out, in no worse state than these; --all shows them.');
    expect(out.at(-1)).toMatch(/: 10,000 markets \(M0_USDT, .* and 9,995 more\)$/);
    const all = await show(statusOf(sick), ['--all']);
    expect(all.out.filter((line) => /^M\d+_USDT /.test(line))).toHaveLength(10_000);
    expect(lineOf(all.out, 'M9999_USDT')).toMatch(/expired/);
  });

  it('has colours and bars on a terminal, no colours with NO_COLOR, and neither elsewhere', async () => {
    const document = statusOf([{ ...BTC, guaranteedMs: 30_000 }]);
    const coloured = (await show(document, [], { terminal: WIDE, env: { LANG: 'en_GB.UTF-8' } })).out.join(
      '\n',
    );
    expect(coloured).toContain('\u001b[32marmed\u001b[0m');
    expect(coloured).toContain('█████░░░░░');
    const plain = (await show(document, [], { terminal: WIDE, env: { NO_COLOR: '1', LANG: 'C' } })).out.join(
      '\n',
    );
    expect(plain).not.toContain('\u001b');
    expect(plain).toContain('#####.....');
    expect((await show(document)).out.join('\n')).not.toMatch(/\p{Cc}(?<!\n)|█|##/u);
  });

  it.each([40, 60, 80, 100])(
    'fits its table into %i columns and keeps what matters most',
    async (columns) => {
      const document = statusOf([
        {
          ...BTC,
          state: 'retrying',
          lastProblem: 'a long tale of what came back from the exchange instead of a timer',
        },
        { market: 'A_MARKET_WITH_A_LONG_NAME_USDT', bot: 'main' },
      ]);
      const { out } = await show(document, [], { terminal: { columns, rows: 24 }, env: { NO_COLOR: '1' } });
      const first = out.findIndex((line) => line.startsWith('MARKET'));
      const table = out.slice(first, first + 3);
      expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(columns);
      expect(table[0]).toMatch(/MARKET +STATE.* LEFT/);
      expect(table[1]).toMatch(/BTC_USDT +retrying .*54 s/);
      if (columns >= 60) expect(table[1]).toMatch(/a long tale.*…$/);
    },
  );

  it('--json prints the document as it came', async () => {
    const document = { ...statusOf([BTC]), somethingNew: { from: 'a later version' } };
    const { out, code } = await show(document, ['--json']);
    expect(code).toBe(0);
    expect(out).toEqual([JSON.stringify(document)]);
  });

  it('reads what an older or a later daemon says as far as it goes', async () => {
    const { out, code } = await show({
      version: 7,
      ready: 'maybe',
      markets: [{ market: 'BTC_USDT', lapses: 'x' }, 3],
    });
    expect(code).toBe(0);
    expect(lineOf(out, 'BTC_USDT')).toBe('BTC_USDT - - - - 0 0');
    expect(out).toContain('Not ready: it does not say why');
  });

  it('lets no text of the exchange steer the terminal', async () => {
    const problem = 'gone\u001b[2J\u001b]0;owned\u0007\nBTC_USDT  armed \u202e';
    const { out } = await show(statusOf([{ ...BTC, state: 'retrying', lastProblem: problem }]), [], {
      terminal: WIDE,
      env: { NO_COLOR: '1' },
    });
    expect(out.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(out.join('\n')).toContain('gone [2J ]0;owned BTC_USDT  armed');
  });
});
