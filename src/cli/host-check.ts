import { createServer } from 'node:net';
import type { Config } from '../config/config.ts';
import { type ListenAddress, ListenError, listenError } from '../operator/listen.ts';
import { checkSocketPlace } from '../operator/socket.ts';

/** What `run` would refuse on this host as it is now, in its own words: each port is bound for a moment. */
export async function checkHost({ web, control }: Config): Promise<string[]> {
  const problems: string[] = [];
  for (const [listener, { listen }] of [
    ['web', web],
    ['control', control],
  ] as const) {
    for (const address of listen) {
      try {
        if (address.kind === 'unix') await checkSocketPlace(address.path);
        else await bind(address);
      } catch (error) {
        problems.push(
          error instanceof ListenError ? error.message : listenError(listener, address.text, error).message,
        );
      }
    }
  }
  return problems;
}

function bind({ host, port }: Extract<ListenAddress, { kind: 'tcp' }>): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
