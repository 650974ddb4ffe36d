import type { Config } from '../config/config.ts';
import { budgetOf, toCoreSettings } from '../config/core-settings.ts';
import type { SecretsRead } from '../config/secrets.ts';
import { LEAST_ATTEMPTS } from '../core/timing.ts';
import { createExchange } from '../exchange/exchange.ts';
import { createKeeper, type Keeper } from '../keeper.ts';
import type { Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { SecretsInForce } from './credentials.ts';
import { createShares, nonceShareOf } from './shares.ts';
import type { Telling } from './telling.ts';

export interface GuardOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly version: string;
  readonly bases: readonly string[];
  readonly secrets: SecretsInForce;
  readonly telling: Telling;
  readonly log: Log;
  /** Reads the secret files again; asked whenever the exchange refuses the key. */
  readonly rereadSecrets: () => SecretsRead;
}

/** The keeper and the client that it writes through. */
export interface Guard {
  readonly keeper: Keeper;
  /** Puts a new configuration in force that differs in nothing but what may change. */
  reload(next: Config): void;
  close(): Promise<void>;
}

function sharingOf({ shard, fleet }: Config) {
  const longestSeconds = fleet.reduce((most, { timeoutSeconds }) => Math.max(most, timeoutSeconds), 0);
  return { ...shard, longestCadenceSeconds: longestSeconds / LEAST_ATTEMPTS };
}

/** Ties the keeper to the exchange; rotated secret files are found without a restart. */
export function createGuard(options: GuardOptions): Guard {
  const { config, clock, version, bases, secrets, telling, log } = options;
  const settings = toCoreSettings(config, bases);
  const shares = createShares(clock, sharingOf(config), () => {
    const budget = budgetNow(config);
    exchange.rebudget(budget);
    keeper.rebudget(budget);
  });
  // `shard.budget` and `exchange.budgetShare` are what they were at the start.
  const budgetNow = ({ exchange: limits, shard }: Config) =>
    budgetOf(limits, { ...shard, count: shares.current().count });
  const exchange = createExchange({
    bases,
    credentials: secrets.credentials,
    nonce: settings.nonce,
    clock,
    budget: settings.budget,
    nonceShare: () => nonceShareOf(shares.current(), { ...config.exchange, ...config.shard }),
    connections: settings.connections,
    userAgent: `killswitchd/${version}`,
  });
  function takeOver(found: Config['secrets']): void {
    if (secrets.takeOver(found)) keeper.credentialsChanged();
  }
  function reread(): void {
    const read = options.rereadSecrets();
    if (read.kind !== 'ok') {
      log.logger.error({ event: 'secrets-unreadable' }, read.problems.join(' '));
    } else if (secrets.takeOver(read.secrets)) {
      log.logger.info({ event: 'secrets-changed' }, 'The secret files hold a new key: it is tried at once.');
      keeper.credentialsChanged();
    }
  }
  const keeper = createKeeper({
    settings,
    clock,
    exchange,
    observe(notice, now) {
      telling.observe(notice, now);
      if (notice.kind === 'attempt-failed' && notice.reason === 'auth') reread();
    },
  });
  return {
    keeper,
    reload(next) {
      secrets.takeOverToken(next);
      takeOver(next.secrets);
      shares.follow(sharingOf(next));
      const budget = budgetNow(next);
      exchange.rebudget(budget);
      keeper.reload({ ...toCoreSettings(next, bases), budget });
    },
    async close() {
      shares.stop();
      await exchange.close();
    },
  };
}
