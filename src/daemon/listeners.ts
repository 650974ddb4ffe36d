import { readFileSync } from 'node:fs';
import { botsOf, type Config } from '../config/config.ts';
import { startControl } from '../operator/control.ts';
import type { ControlSources } from '../operator/control-sources.ts';
import { startWeb, type WebOptions } from '../operator/web.ts';
import type { Log } from '../telemetry/log.ts';
import type { SecretsInForce } from './guard.ts';

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

/** Opens the read-only listeners, then those that change state. Rejects where one cannot be bound; then none is open. */
export async function openListeners(
  config: Config,
  pages: Omit<WebOptions, 'listen'>,
  sources: Omit<ControlSources, 'status'>,
  { token, hide }: SecretsInForce,
  { logger }: Log,
) {
  const limit = descriptorLimit();
  const most = connectionsPerListener(limit, config);
  if (most !== undefined) {
    logger.warn(
      { event: 'few-descriptors', limit, most },
      `Only ${limit} files and connections may be open (ulimit -n): each listener takes at most ${most} connections, so that renewals have theirs.`,
    );
  }
  const capped = most === undefined ? {} : { mostConnections: most };
  const web = await startWeb({ ...pages, ...capped, listen: config.web.listen });
  const { listen, access } = config.control;
  const { status } = web;
  const options = { ...capped, listen, access, token, hide, sources: { ...sources, status } };
  const control = await startControl(options).catch(async (error: unknown) => {
    await web.close();
    throw error;
  });
  return {
    /** Where the status page is. */
    web: web.addresses,
    /** Where beats and commands are taken. */
    control: control.addresses,
    async close(): Promise<void> {
      await control.close();
      await web.close();
    },
  };
}
