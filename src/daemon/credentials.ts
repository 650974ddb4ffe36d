import type { Config } from '../config/config.ts';
import { hideSecrets } from '../util/redact.ts';

export type Credentials = { readonly key: string; readonly secret: string };

/** The secrets in force. They change while the daemon runs: files are rotated. */
export interface SecretsInForce {
  readonly credentials: () => Credentials;
  /** The bearer token of the control listener; null where none is configured. */
  readonly token: () => string | null;
  /** Everything that must not show up anywhere. */
  readonly all: () => readonly string[];
  /** A text for the world: a secret that somebody wrote where it does not belong is blotted out of it. */
  readonly hide: (text: string) => string;
  /** True where key or secret differ from those in force so far. */
  takeOver(found: Config['secrets']): boolean;
  /** The token of the control listener and the addresses of `notify`. */
  takeOverOthers(config: Config): void;
}

export function createSecrets(config: Config): SecretsInForce {
  let credentials = reveal(config.secrets);
  let others = revealOthers(config);
  const all = () => [credentials.secret, credentials.key, ...others.all];
  return {
    credentials: () => credentials,
    token: () => others.token,
    all,
    hide: (text) => hideSecrets(text, all()),
    takeOver(found) {
      const { key, secret } = reveal(found);
      if (key === credentials.key && secret === credentials.secret) return false;
      credentials = { key, secret };
      return true;
    },
    takeOverOthers(next) {
      others = revealOthers(next);
    },
  };
}

function reveal({ apiKey, apiSecret }: Config['secrets']): Credentials {
  return { key: apiKey.reveal(), secret: apiSecret.reveal() };
}

function revealOthers({ control, notify }: Config) {
  const token = control.token?.reveal() ?? null;
  const urls = [notify.url, notify.pingUrl].flatMap((url) => (url === null ? [] : [new URL(url.reveal())]));
  // What is secret of an address is all but its host.
  const parts = urls.flatMap(({ href, pathname, search }) => [href, pathname + search, pathname]);
  return { token, all: [...(token === null ? [] : [token]), ...parts] };
}
