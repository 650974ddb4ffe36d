import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Flags } from '../../src/config/environment.ts';
import { type Loaded, loadConfig } from '../../src/config/load.ts';
import type { Command } from '../../src/config/meaning.ts';
import { findSources, type Sources } from '../../src/config/print.ts';
import { folderFor } from '../liveness/started.ts';

/** Key and secret of a daemon whose configuration file is under test. */
export const SECRETS = {
  KILLSWITCHD_API_KEY: 'fixture-api-key-0',
  KILLSWITCHD_API_SECRET: 'fixture-api-secret-0',
} as const;

/** A file with this content, which is removed after the test. */
export function fileOf(content: string | Buffer, mode = 0o400, name = 'file'): string {
  const path = join(folderFor({ onTestFinished }), name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

/** The same for shards 0 to 3: the path of a key file must have the number of its shard in it. */
export const shardSecrets = () => ({
  KILLSWITCHD_API_KEY_FILE: fileOf(SECRETS.KILLSWITCHD_API_KEY, 0o400, 'api-key-0-1-2-3'),
  KILLSWITCHD_API_SECRET: SECRETS.KILLSWITCHD_API_SECRET,
});

export const FILE = `
exchange: { baseUrls: [https://exchange.example] }
defaults: { timeoutSeconds: 40 }
markets:
  - BTC_USDT
  - { market: ETH_USDT, timeoutSeconds: 30, types: [spot, margin], bot: maker }
liveness: { mode: none }
log: { level: warn }
`;

export const ENVIRONMENT = {
  ...SECRETS,
  KILLSWITCHD_BASE_URL: 'https://exchange.example',
  KILLSWITCHD_MARKETS: 'BTC_USDT:60:spot+margin,ETH_USDT',
  KILLSWITCHD_LIVENESS_MODE: 'none',
};

/** Loads a file with this text, with key and secret in the environment; or no file at all where it is null. */
export function load(
  text: string | Buffer | null,
  env: Record<string, string> = {},
  flags: Flags = {},
  command: Command | null = null,
): Loaded {
  if (text === null) return loadConfig({ env, flags, command });
  const config = fileOf(text, 0o400, 'killswitchd.yaml');
  const secrets = 'KILLSWITCHD_API_KEY_FILE' in env ? {} : SECRETS;
  return loadConfig({ env: { ...secrets, ...env }, flags: { config, ...flags }, command });
}

/** As `load`, of something that is expected to be right. */
export function loadWell(...given: Parameters<typeof load>): Loaded & { kind: 'ok'; sources: Sources } {
  const loaded = load(...given);
  if (loaded.kind !== 'ok') throw new Error(loaded.problems.join('\n'));
  return { ...loaded, sources: findSources(loaded) };
}

/** All messages, one per line; nothing for what is right. */
export function problemsOf(loaded: Loaded): string {
  return loaded.kind === 'invalid' ? loaded.problems.join('\n') : '';
}
