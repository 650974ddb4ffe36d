import { afterAll, beforeAll } from 'vitest';
import type { Profile } from '../../src/simulator/answer.ts';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { hostClock, type Sent, send } from './raw-client.ts';

interface Answered {
  readonly status: number;
  readonly value: unknown;
}

interface BothProfiles {
  readonly server: (profile: Profile) => SimulatedServer;
  readonly ask: (sent: Sent, profile?: Profile) => Promise<Answered>;
}

/** Runs a server of each profile for the tests of a file. */
export function runBothProfiles(): BothProfiles {
  const servers = new Map<Profile, SimulatedServer>();
  beforeAll(async () => {
    for (const profile of ['documented', 'live'] as const) {
      const listen = { host: '127.0.0.1', port: 0 };
      servers.set(profile, await startSimulatedServer({ clock: hostClock, listen, exchange: { profile } }));
    }
  });
  afterAll(async () => {
    for (const server of servers.values()) await server.close();
  });
  const server = (profile: Profile): SimulatedServer => {
    const found = servers.get(profile);
    if (found === undefined) throw new Error('the servers run only inside tests');
    return found;
  };
  return {
    server,
    async ask(sent, profile = 'documented') {
      const { status, body } = await send(server(profile).url, sent);
      return { status, value: JSON.parse(body) };
    },
  };
}

/** The private error object of the API document. */
export function refusal(code: number, message: string, errors: object = {}): object {
  return { code, message, errors };
}
