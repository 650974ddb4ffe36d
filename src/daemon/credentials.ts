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
  takeOverToken(config: Config): void;
}

export function createSecrets(config: Config): SecretsInForce {
  let credentials = reveal(config.secrets);
  let token = config.control.token?.reveal() ?? null;
  const all = () => [credentials.secret, credentials.key, ...(token === null ? [] : [token])];
  return {
    credentials: () => credentials,
    token: () => token,
    all,
    hide: (text) => hideSecrets(text, all()),
    takeOver(found) {
      const { key, secret } = reveal(found);
      if (key === credentials.key && secret === credentials.secret) return false;
      credentials = { key, secret };
      return true;
    },
    takeOverToken(next) {
      token = next.control.token?.reveal() ?? null;
    },
  };
}

function reveal({ apiKey, apiSecret }: Config['secrets']): Credentials {
  return { key: apiKey.reveal(), secret: apiSecret.reveal() };
}
