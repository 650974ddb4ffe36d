import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { type SimulatorOptions, startExchange } from '../../src/library/simulator.ts';
import type { Profile } from '../../src/simulator/answer.ts';
import type { SimulatedServer } from '../../src/simulator/server.ts';
import { type Sent, send } from './raw-client.ts';

/** Runs a server until the test ends. */
export async function openServer(options: SimulatorOptions = {}): Promise<SimulatedServer> {
  const server = await startExchange(options);
  onTestFinished(() => server.close());
  return server;
}

/** Runs a server for the tests of a file. */
export function runServer(options: SimulatorOptions = {}): () => SimulatedServer {
  let running: SimulatedServer | undefined;
  beforeAll(async () => {
    running = await startExchange(options);
  });
  afterAll(() => running?.close());
  return () => running ?? expect.fail('the server runs only inside tests');
}

/** Runs a server of each profile for the tests of a file. */
export function runBothProfiles(exchange: SimulatorOptions['exchange'] = {}) {
  const servers = {
    documented: runServer({ exchange: { ...exchange, profile: 'documented' } }),
    live: runServer({ exchange: { ...exchange, profile: 'live' } }),
  };
  const server = (profile: Profile) => servers[profile]();
  return {
    server,
    ask: async (sent: Sent, profile: Profile = 'documented') => {
      const { status, body } = await send(server(profile).url, sent);
      return { status, value: JSON.parse(body) as unknown };
    },
  };
}

/** The private error object of the API document. */
export function refusal(code: number, message: string, errors: object = {}): object {
  return { code, message, errors };
}
