import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { type Loaded, loadConfig } from '../../src/config/load.ts';

/** Key and secret of a daemon whose configuration file is under test. */
export const SECRETS = {
  KILLSWITCHD_API_KEY: 'fixture-api-key-0',
  KILLSWITCHD_API_SECRET: 'fixture-api-secret-0',
} as const;

/** Loads a fixture: an `.env` file as the whole environment, everything else as the file of `--config`. */
export function loadFixture(path: string): Loaded {
  if (path.endsWith('.env')) {
    return loadConfig({ env: parseEnv(readFileSync(path, 'utf8')) as Record<string, string>, flags: {} });
  }
  return loadConfig({ env: SECRETS, flags: { config: path } });
}

/** The messages that a fixture's leading `# expect:` comments ask for; FILE stands for its own path. */
export function expectedOf(path: string): string[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines
    .filter((line) => line.startsWith('# expect: '))
    .map((line) => line.slice('# expect: '.length).replace(/\bFILE:/g, `${path}:`));
}
