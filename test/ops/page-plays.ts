import { createStage, type Stage } from './page-stage.ts';

/** Two markets that are renewed, one bot that beats, one address. */
export function playWell(): Stage {
  const stage = createStage();
  stage.bots = [{ bot: 'main', mode: 'beat', state: 'alive', ttlMs: 15_000, heardAtMs: performance.now() }];
  stage.add('BTC_USDT', 60_000, 6000);
  stage.add('ETH_USDT', 10_000, 2000);
  return stage;
}

/** Every state that a market, a bot and an address can be in. */
export function playTrouble(): Stage {
  const play = playWell();
  const idle = { wanted: false, firesByWallMs: null, onStop: 'nothing to do: no timer is armed' };
  const retrying = { failureStreak: 7, failures: 1200, lastProblem: 'HTTP 503 with 163 bytes of text/html' };
  play.add('SOL_USDT', 60_000, 6000, {
    ...retrying,
    state: 'retrying',
    types: ['spot', 'margin', 'futures'],
  });
  play.add('XRP_USDT', 30_000, 3000, { ...retrying, state: 'expired', guaranteedMs: -4000, lapses: 2 });
  play.add('LTC_USDT', 30_000, 3000, { state: 'rejected', lastProblem: 'code 30: market is not known' });
  play.add('ADA_USDT', 30_000, 3000, { state: 'suspended', wanted: false });
  play.add('DOT_USDT', 30_000, 3000, { state: 'arming', guaranteedMs: null, slackHistory: [] });
  const untilWallMs = Date.now() + 583_000;
  const paused = { guaranteedMs: null, hold: { why: 'paused', untilWallMs } } as const;
  play.add('TRX_USDT', 30_000, 3000, { ...idle, ...paused, state: 'paused' });
  const tripped = { guaranteedMs: null, hold: { why: 'tripped', untilWallMs: null }, leaving: true } as const;
  play.add('BNB_USDT', 30_000, 3000, { ...idle, ...tripped, state: 'disarmed' });
  play.bots = [
    ...play.bots,
    { bot: 'hedger', mode: 'file', state: 'stale', ttlMs: 15_000, heardAtMs: performance.now() - 40_000 },
    { bot: 'third', mode: 'none', state: 'starting', ttlMs: null, heardAtMs: null },
  ];
  const url = 'https://second-address-of-the-exchange.example';
  play.bases = [
    ...play.bases,
    { url, up: false, pingMs: null, lastProblem: 'connection refused', outage: true },
  ];
  play.say(
    'error',
    'lapsed',
    'XRP_USDT LAPSED: its timer fired and the exchange cancelled its orders.',
    90_000_000,
  );
  play.say('warn', 'attempt-failed', 'SOL_USDT: a renewal failed after 1.5 s (timeout: no answer).');
  play.say('info', 'armed', 'BTC_USDT is armed.');
  return play;
}
