import { isDeepStrictEqual } from 'node:util';
import { type Config, toCoreSettings, warnOfPace } from '../config/config.ts';
import { revealCredentials, type SecretsRead } from '../config/secrets.ts';
import type { CoreSettings } from '../core/events.ts';
import type { Notice } from '../core/notice.ts';
import { seconds } from '../core/promise.ts';
import type { MarketSnapshot, Snapshot } from '../core/view.ts';
import { createExchange } from '../exchange/exchange.ts';
import { createKeeper } from '../keeper.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import { hideSecrets } from '../util/text.ts';
import { VERSION } from '../version.ts';
import type { Telemetry } from './telemetry.ts';

/** So many secrets are hidden, old ones as well: an old key may still be valid, and an answer may come late. */
const SECRETS_HIDDEN = 40;

type SecretSections = Pick<Config, 'secrets' | 'control' | 'notify'>;

/** The secrets in force. They change while the daemon runs: files are rotated. */
export function createSecrets(sections: SecretSections) {
  let inForce = sections;
  let credentials = revealCredentials(sections.secrets);
  let all: readonly string[] = [];
  /** True where key or secret have changed. */
  function replace(changed: Partial<SecretSections>): boolean {
    const before = credentials;
    inForce = { ...inForce, ...changed };
    credentials = revealCredentials(inForce.secrets);
    // Those in force come first, so that the limit drops old ones only.
    const found = [credentials.secret, credentials.key, ...revealOthers(inForce), ...all];
    all = [...new Set(found)].slice(0, SECRETS_HIDDEN);
    return !isDeepStrictEqual(before, credentials);
  }
  replace({});
  return {
    credentials: () => credentials,
    all: () => all,
    hide: (text: string) => hideSecrets(text, all),
    replace,
  };
}

/** The token of the control listener, and all but the host of the addresses of `notify`. */
function revealOthers({ control, notify }: SecretSections): readonly string[] {
  const found = [notify.url, notify.pingUrl].flatMap((url) => {
    if (url === null) return [];
    const { href, pathname, search } = new URL(url.reveal());
    return [href, pathname + search, pathname];
  });
  return control.token === null ? found : [control.token.reveal(), ...found];
}

interface GuardOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly bases: readonly string[];
  readonly secrets: ReturnType<typeof createSecrets>;
  readonly telemetry: Pick<Telemetry, 'observers' | 'log'>;
  /** Asked when the key is refused, and every second until it is accepted. Null where a file system does not answer. */
  readonly rereadSecrets: () => Promise<SecretsRead | null>;
}

export type Guard = ReturnType<typeof createGuard>;

/** Ties the keeper to the exchange, and puts a new key in force without a restart. */
export function createGuard(options: GuardOptions) {
  const { config, clock, bases, secrets, telemetry } = options;
  const { observers, log } = telemetry;
  let settings = toCoreSettings(config, bases);
  const exchange = createExchange({
    ...settings,
    clock,
    allowPlainHttp: config.exchange.allowPlainHttp,
    credentials: secrets.credentials,
    hidden: secrets.all,
    userAgent: `killswitchd/${VERSION}`,
  });
  const tellBounds = createBoundsTeller(log, () => keeper.snapshot());
  const replaceSecrets = (changed: Partial<SecretSections>): boolean => {
    if (!secrets.replace(changed)) return false;
    const text = 'The secret files hold a new key: it signs the next request.';
    log.logger.info({ event: 'secrets-changed' }, text);
    keeper.credentialsChanged();
    return true;
  };
  const keyWatch = createKeyWatch(options, replaceSecrets);
  const keeper = createKeeper({
    settings,
    clock,
    exchange,
    observe(notice, now) {
      for (const observe of observers) observe(notice, now);
      if (notice.kind === 'attempt-failed' && notice.reason === 'auth') keyWatch.look();
      else if (['renewed', 'deleted', 'tripped'].includes(notice.kind)) keyWatch.end();
      else if (notice.kind === 'cadence' || notice.kind === 'all-armed') tellBounds(notice, settings);
    },
  });
  return {
    keeper,
    hide: secrets.hide,
    replaceSecrets,
    /** Puts a configuration in force, but for its secrets. It differs only in what may change while the daemon runs. */
    follow(next: Config): void {
      settings = toCoreSettings(next, bases);
      keeper.reload(settings);
    },
    async close(): Promise<void> {
      keyWatch.end();
      await exchange.close();
    },
  };
}

const REREAD_MS = 1000;

/** Reads the secret files at every refusal of the key, and every second from there until a request is carried out. */
function createKeyWatch(
  { clock, telemetry: { log }, rereadSecrets }: GuardOptions,
  replaceSecrets: (changed: Partial<SecretSections>) => unknown,
) {
  let problems = '';
  let cancel: Cancel | null = null;
  async function reread(): Promise<void> {
    const read = await rereadSecrets();
    if (read === null) return;
    const found = read.kind === 'ok' ? '' : read.problems.join(' ');
    // The files are read every second; a problem is logged once.
    if (found !== '' && found !== problems) log.logger.error({ event: 'secrets-unreadable' }, found);
    problems = found;
    if (read.kind === 'ok') replaceSecrets({ secrets: read.secrets });
  }
  function look(): void {
    cancel ??= clock.after(REREAD_MS, () => {
      cancel = null;
      look();
    });
    void reread();
  }
  return {
    look,
    end(): void {
      cancel?.();
      cancel = null;
    },
  };
}

/** Says the bounds anew: at the start they held for an assumed answer time. Repeats no warning. */
function createBoundsTeller({ logger }: Log, snapshot: () => Snapshot) {
  let warned: readonly string[] = [];
  return (notice: Extract<Notice, { kind: 'cadence' | 'all-armed' }>, settings: CoreSettings): void => {
    const markets = snapshot().markets.filter(({ leaving }) => !leaving);
    const shareOf = ({ survivesMs, timeoutMs }: MarketSnapshot) => survivesMs / timeoutMs;
    const [tightest] = markets.toSorted((one, other) => shareOf(one) - shareOf(other));
    if (tightest === undefined) return;
    const { market, survivesMs, periodMs, grantedMs } = tightest;
    const holds =
      survivesMs > 0
        ? `an outage of the exchange shorter than ${seconds(survivesMs)} cancels nothing of`
        : 'renewals may come too late, and orders MAY BE CANCELLED without any outage, of';
    const says = `From now on ${holds} ${market} (renewed every ${seconds(Math.round(periodMs))}, timer of ${seconds(grantedMs)}), the market with the least room for its timeout.`;
    logger[survivesMs > 0 ? 'info' : 'warn']({ event: 'promise', market, promise: [says] }, says);
    if (notice.kind !== 'cadence' || notice.answerMs === null) return;
    // The key that a warning begins with names it: its figures change.
    const subjectOf = (warning: string) => warning.split(':', 1)[0] ?? '';
    const warnings = warnOfPace(settings, Math.ceil(notice.answerMs));
    for (const warning of warnings)
      if (!warned.includes(subjectOf(warning))) logger.warn({ event: 'config-warning' }, `${warning}.`);
    warned = warnings.map(subjectOf);
  };
}
