import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Config } from './config.ts';
import { type Loaded, type LoadOptions, loadConfig } from './load.ts';
import { makeSecret, type Secret, type SecretOrigin } from './secret.ts';

/** What a reload needs of a configuration that was read: no warnings, and not where each value came from. */
export type Reread =
  | { readonly kind: 'ok'; readonly config: Config }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

/** A thread takes 0.1 s to start: what is read in less time, about 25 ms here, is not worth one. */
const SMALL_CHARS = 32 * 1024;

/** The worker has the extension of this file: it runs from the sources and from the build. */
const SOURCE = new URL('./load-worker.ts', import.meta.url).href;
const WORKER = new URL(import.meta.url.endsWith('.ts') ? SOURCE : SOURCE.replace(/ts$/, 'js'));

/**
 * Reads the whole configuration as `loadConfig` does, with the same messages, and without holding the event loop: ten
 * thousand markets take half a second, which no renewal should have to wait for. Large ones are read on a thread of their
 * own. Never rejects.
 */
export async function loadAside(options: LoadOptions): Promise<Reread> {
  if (sizeOf(options) < SMALL_CHARS) return withoutSources(loadConfig(options));
  const env = Object.fromEntries(
    Object.entries(options.env).filter(([name]) => name.startsWith('KILLSWITCHD_')),
  );
  let worker: Worker;
  try {
    worker = new Worker(WORKER, { workerData: { ...options, env } });
  } catch {
    // No thread to be had: a reload that holds the loop is better than none.
    return withoutSources(loadConfig(options));
  }
  return new Promise((resolve) => {
    const fail = (why: string) =>
      resolve({ kind: 'invalid', problems: [`the configuration could not be read: ${why}`] });
    worker.once('message', (packed: Packed) => resolve(unpack(packed)));
    worker.once('error', (error) => fail(error instanceof Error ? error.message : String(error)));
    // After a message this comes too late to count.
    worker.once('exit', (code) => fail(`its reader ended with code ${code}`));
  });
}

/** Of what has to be read and checked, in characters or bytes. */
function sizeOf({ env, flags }: LoadOptions): number {
  const file = flags.config ?? env['KILLSWITCHD_CONFIG'];
  const markets = flags.markets?.join(',') ?? env['KILLSWITCHD_MARKETS'] ?? '';
  return markets.length + (file === undefined ? 0 : bytesOf(file));
}

/** A file that cannot be looked at is told about by whoever reads it. */
function bytesOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

function withoutSources(loaded: Loaded): Reread {
  return loaded.kind === 'ok' ? { kind: 'ok', config: loaded.config } : loaded;
}

/** A secret is a function, which no message between threads can hold. */
type Bare = { readonly text: string; readonly origin: SecretOrigin };

/** A configuration as it goes from thread to thread, inside this process. */
export type Packed =
  | Extract<Reread, { kind: 'invalid' }>
  | {
      readonly kind: 'ok';
      readonly config: Omit<Config, 'secrets' | 'control'> & { control: Omit<Config['control'], 'token'> };
      readonly apiKey: Bare;
      readonly apiSecret: Bare;
      readonly token: Bare | null;
    };

/** For the worker. */
export function pack(loaded: Loaded): Packed {
  if (loaded.kind === 'invalid') return loaded;
  const { secrets, control, ...rest } = loaded.config;
  const { token, ...open } = control;
  return {
    kind: 'ok',
    config: { ...rest, control: open },
    apiKey: bare(secrets.apiKey),
    apiSecret: bare(secrets.apiSecret),
    token: token === null ? null : bare(token),
  };
}

function unpack(packed: Packed): Reread {
  if (packed.kind === 'invalid') return packed;
  const { config, apiKey, apiSecret, token } = packed;
  const secrets = { apiKey: wrap(apiKey), apiSecret: wrap(apiSecret) };
  const control = { ...config.control, token: token === null ? null : wrap(token) };
  return { kind: 'ok', config: { ...config, secrets, control } };
}

function bare(secret: Secret): Bare {
  return { text: secret.reveal(), origin: secret.origin };
}

function wrap({ text, origin }: Bare): Secret {
  return makeSecret(text, origin);
}
