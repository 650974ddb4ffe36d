import { type Config, toCoreSettings } from '../config/config.ts';
import type { SecretsRead } from '../config/secrets.ts';
import type { Notice } from '../core/notice.ts';
import { createExchange } from '../exchange/exchange.ts';
import { createKeeper, type Keeper } from '../keeper.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { SecretsInForce } from './credentials.ts';
import { createPaceTold } from './introduce.ts';
import type { Telling } from './telling.ts';

/** While the key is refused its files are looked at this often. */
const REREAD_MS = 1000;

export interface GuardOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly version: string;
  readonly bases: readonly string[];
  readonly secrets: SecretsInForce;
  readonly telling: Telling;
  readonly log: Log;
  /** Whether the file systems of the secret files answer. */
  readonly filesAnswer: () => Promise<boolean>;
  /** Reads the secret files again; asked whenever the exchange refuses the key, and every second until it does not. */
  readonly rereadSecrets: () => SecretsRead;
}

/** The keeper and the client that it writes through. */
export interface Guard {
  readonly keeper: Keeper;
  /** Puts the secrets of a new configuration in force. */
  takeOver(next: Config): void;
  /** Puts everything else of it in force. It differs in nothing but what may change. */
  follow(next: Config): void;
  close(): Promise<void>;
}

/** Reads the secret files again, and says what has changed. */
function createReread(
  { secrets, log, filesAnswer, rereadSecrets }: GuardOptions,
  changed: () => void,
): () => Promise<void> {
  let problems = '';
  return async () => {
    if (!(await filesAnswer())) return;
    const read = rereadSecrets();
    const found = read.kind === 'ok' ? '' : read.problems.join(' ');
    // Read every second, and said once.
    if (found !== '' && found !== problems) log.logger.error({ event: 'secrets-unreadable' }, found);
    problems = found;
    if (read.kind !== 'ok' || !secrets.takeOver(read.secrets)) return;
    tellNewKey(log);
    changed();
  };
}

function tellNewKey({ logger }: Log): void {
  logger.info({ event: 'secrets-changed' }, 'The secret files hold a new key: it is tried at once.');
}

/** Looks for a new key at every refusal, and every second from there until a request is carried out. */
function createKeyWatch(clock: Clock, look: () => void) {
  let endLook: Cancel | null = null;
  const lookAgain = (): void => {
    endLook ??= clock.after(REREAD_MS, () => {
      endLook = null;
      lookAgain();
      look();
    });
  };
  const end = (): void => {
    endLook?.();
    endLook = null;
  };
  return {
    observe(notice: Notice): void {
      if (notice.kind === 'attempt-failed' && notice.reason === 'auth') {
        lookAgain();
        look();
      } else if (notice.kind === 'renewed' || notice.kind === 'deleted' || notice.kind === 'tripped') {
        end();
      }
    },
    end,
  };
}

/** Ties the keeper to the exchange; rotated secret files are found without a restart. */
export function createGuard(options: GuardOptions): Guard {
  const { config, clock, version, bases, secrets, telling } = options;
  let settings = toCoreSettings(config, bases);
  const exchange = createExchange({
    bases,
    allowPlainHttp: config.exchange.allowPlainHttp,
    credentials: secrets.credentials,
    nonce: settings.nonce,
    clock,
    connections: settings.connections,
    requestLifetimeMs: settings.requestLifetimeMs,
    userAgent: `killswitchd/${version}`,
  });
  const tellPace = createPaceTold(options.log, () => keeper.snapshot());
  const reread = createReread(options, () => keeper.credentialsChanged());
  const keyWatch = createKeyWatch(clock, () => void reread());
  const keeper = createKeeper({
    settings,
    clock,
    exchange,
    observe(notice, now) {
      telling.observe(notice, now);
      keyWatch.observe(notice);
      tellPace(notice, settings);
    },
  });
  return {
    keeper,
    takeOver(next) {
      secrets.takeOverOthers(next);
      if (!secrets.takeOver(next.secrets)) return;
      tellNewKey(options.log);
      keeper.credentialsChanged();
    },
    follow(next) {
      settings = toCoreSettings(next, bases);
      keeper.reload(settings);
    },
    async close() {
      keyWatch.end();
      await exchange.close();
    },
  };
}
