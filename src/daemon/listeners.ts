import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { startControl } from '../operator/control.ts';
import type { ControlSources } from '../operator/control-sources.ts';
import { startWeb, type WebOptions } from '../operator/web.ts';
import type { SecretsInForce } from './credentials.ts';
import { botsOf } from './evidence.ts';

/** Connections to the exchange, at their most while all are replaced, and what a daemon has open besides. */
const RESERVED = 192;
/** No listener uses more connections than this. */
const MOST_USED = 256;

/** How many files and connections the system lets this process open; null where it does not tell. */
function descriptorLimit(): number | null {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}

/** The connections that each listener may have, so that renewals never want for a descriptor; no bound where all is well. */
function connectionsPerListener(limit: number | null, { web, control, fleet }: Config): number | undefined {
  const listeners = web.listen.length + control.listen.length;
  if (limit === null || listeners === 0) return undefined;
  // A bot with a URL has a connection, and one that is being opened.
  const each = Math.floor((limit - RESERVED - 2 * botsOf(fleet).length) / listeners);
  return each >= MOST_USED ? undefined : Math.max(2, each);
}

/** Everything that listens, bound. */
export interface Listeners {
  /** Where the status page is. */
  readonly web: readonly string[];
  /** Where beats and commands are taken. */
  readonly control: readonly string[];
  close(): Promise<void>;
}

/**
 * Opens the read-only listeners, then those that change state. Rejects where one cannot be bound; then none is open.
 * `onFew` is told of a limit of descriptors that is low, and how many connections each listener has then.
 */
export async function openListeners(
  config: Config,
  pages: Omit<WebOptions, 'listen'>,
  { token, hide }: Pick<SecretsInForce, 'token' | 'hide'>,
  sourcesWith: (status: ControlSources['status']) => ControlSources,
  onFew: (limit: number | null, most: number) => void,
): Promise<Listeners> {
  const { web, control } = config;
  const limit = descriptorLimit();
  const most = connectionsPerListener(limit, config);
  if (most !== undefined) onFew(limit, most);
  const capped = most === undefined ? {} : { mostConnections: most };
  const opened = await startWeb({ ...pages, ...capped, listen: web.listen });
  try {
    const taken = await startControl({
      ...capped,
      listen: control.listen,
      access: control.access,
      token,
      hide,
      sources: sourcesWith(opened.status),
    });
    return {
      web: opened.addresses,
      control: taken.addresses,
      async close() {
        await taken.close();
        await opened.close();
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
