import { describe, expect, test } from 'vitest';
import { BOT, botSays, PROCESS } from './exec-play.ts';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';
import { isFull, openUnread } from './unread-pipe.ts';

/** Enough of them that their log fills a pipe within a few seconds. */
const MARKETS = Array.from({ length: 45 }, (_, index) => `M${index}_USDT`);
const PERIOD_MS = 1000;

describe.concurrent('renewals go on, and a stop is clean, when the reader of the log', {
  timeout: 60_000,
}, () => {
  test.for(['dies', 'never reads', 'never reads what exec writes to the journal'])(
    '%s',
    async (reader, context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      const unread = reader === 'never reads' ? openUnread(stage.directory, context) : null;
      const ofExec = { bot: BOT, stderr: 'unread' } as const;
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
        // One after the other, so many markets would ask more of the round trip than of the log.
        // The stop comes when no request of a life before can arrive any more: else it could not be sure of its deletes.
        config: {
          log: { level: 'debug' },
          liveness: reader.includes('exec') ? PROCESS : { mode: 'none' },
          exchange: { nonce: 'window', requestLifetimeSeconds: 5 },
        },
        ...(reader.includes('exec') ? ofExec : {}),
        ...(unread === null ? {} : { stdout: unread }),
      });
      await eventually('every market armed', 20_000, async () =>
        ofKind(await exchange.events(), 'timer-armed').length < MARKETS.length ? null : true,
      );
      if (reader === 'dies') daemon.closeStdout();
      if (reader.includes('exec')) await botSays(daemon, 'started');
      const fromMs = await exchange.nowMs();
      await sleep(5000);
      const toMs = await exchange.nowMs();
      const events = await exchange.events();
      const gapsMs = MARKETS.map((market) => longestGapMs(events, market, fromMs, toMs));
      expect(gapsMs.filter((gapMs) => gapMs > PERIOD_MS + 1000)).toEqual([]);
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0 });
      expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(MARKETS.length);
      if (unread !== null) expect(isFull(stage.directory)).toBe(true);
    },
  );
});
