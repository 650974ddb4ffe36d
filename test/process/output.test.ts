import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { ROOT } from './program.ts';

const MARKETS = 500;

test('what a command prints arrives whole, however slowly it is read', {
  timeout: 60_000,
}, async (context) => {
  const { directory } = stageFor(context);
  const config = join(directory, 'killswitchd.json');
  writeFileSync(
    config,
    JSON.stringify({
      exchange: { baseUrls: ['https://exchange.example'] },
      markets: Array.from({ length: MARKETS }, (_, index) => ({
        market: `M${index}_USDT`,
        timeoutSeconds: 60,
      })),
      liveness: { mode: 'none' },
    }),
  );
  const command = '"$0" src/main.ts check-config --print --format json --config "$1" | { sleep 4; cat; }';
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, config], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], KILLSWITCHD_API_KEY: 'a-key', KILLSWITCHD_API_SECRET: 'a-secret' },
    maxBuffer: 16 * 1024 * 1024,
  });
  expect(stdout.length).toBeGreaterThan(200_000);
  expect((JSON.parse(stdout) as { markets: unknown[] }).markets).toHaveLength(MARKETS);
});
