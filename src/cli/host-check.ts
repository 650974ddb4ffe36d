import { createServer } from 'node:net';
import { createSystemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { type ListenAddress, ListenError, listenError } from '../operator/listen.ts';
import { checkSocketPlace } from '../operator/socket.ts';
import { createControlClient, isRecord } from './control-client.ts';

/** What was found on this host, one sentence each. */
export interface HostFound {
  /** What `run` would refuse as things are, in its own words. */
  readonly problems: readonly string[];
  /** Where a daemon runs already: the checked configuration is for its restart, or for another one. */
  readonly warnings: readonly string[];
}

/** How long whoever listens at an address has to show that it is a killswitchd. */
const ANSWER_WITHIN_MS = 500;

/** Looks at every address that `run` would open on this host as it is now: each port is bound for a moment. */
export async function checkHost({ web, control }: Config): Promise<HostFound> {
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const [listener, { listen }] of [
    ['web', web],
    ['control', control],
  ] as const) {
    for (const address of listen) {
      try {
        if (address.kind === 'unix') await checkSocketPlace(address.path);
        else await bind(address);
      } catch (cause) {
        const error = cause instanceof ListenError ? cause : listenError(listener, address.text, cause);
        if (error.code !== 'EADDRINUSE' || !(await isDaemon(listener, address))) problems.push(error.message);
        else
          warnings.push(
            `${listener} listener ${address.text}: a killswitchd runs there; restart it with this configuration, or give this one an address of its own`,
          );
      }
    }
  }
  return { problems, warnings };
}

function bind({ host, port }: Extract<ListenAddress, { kind: 'tcp' }>): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}

async function isDaemon(listener: 'web' | 'control', address: ListenAddress): Promise<boolean> {
  const client = createControlClient({ address, token: null }, createSystemClock());
  const path = listener === 'web' ? '/livez?verbose' : '/v1/health';
  try {
    const { text, json } = await client.ask({ method: 'GET', path, withinMs: ANSWER_WITHIN_MS });
    if (listener === 'web') return text.includes('livez check ');
    return isRecord(json) && ('live' in json || isRecord(json['error']));
  } catch {
    return false;
  }
}
