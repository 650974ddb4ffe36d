import { describe, expect, it } from 'vitest';
import { toCoreSettings } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { SECRETS } from './fixture.ts';

const BASES = ['https://exchange.example'];

function settingsFor(markets: string, env: Record<string, string> = {}, bases = BASES) {
  const loaded = loadConfig({
    env: {
      ...SECRETS,
      KILLSWITCHD_BASE_URL: 'https://exchange.example',
      KILLSWITCHD_LIVENESS_MODE: 'none',
      KILLSWITCHD_MARKETS: markets,
      ...env,
    },
    flags: {},
  });
  if (loaded.kind !== 'ok') throw new Error(loaded.problems.join('\n'));
  return toCoreSettings(loaded.config, bases);
}

describe('what the core is told', () => {
  it('counts in milliseconds and holds every default', () => {
    const settings = settingsFor('BTC_USDT:30:spot');
    expect(settings).toEqual({
      markets: [
        { market: 'BTC_USDT', timeoutMs: 30_000, types: ['spot'], renewEveryMs: null, bot: 'default' },
      ],
      nonce: 'increasing',
      bases: BASES,
      sameAccount: false,
      budget: { requests: 5000, windowMs: 10_000 },
      connections: 64,
      liveness: { mode: 'none', ttlMs: 15_000, startupGraceMs: 60_000, onStale: 'expire' },
      onLapse: 'rearm',
      shutdown: { policy: 'delete', budgetMs: 8000 },
      ping: { everyMs: 5000, timeoutMs: 3000 },
      cancellationDelayMs: 0,
      requestLifetimeMs: 10_000,
      movedAway: [],
    });
  });
});
