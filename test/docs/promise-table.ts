import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { table } from './markdown.ts';
import { ask } from './program.ts';

const TIMEOUTS_SECONDS = [5, 10, 15, 30, 60, 120, 300, 600];
/** Fit to pass the checks of the configuration, and no more. */
const SOME_KEY = { KILLSWITCHD_API_KEY: 'some-key', KILLSWITCHD_API_SECRET: 'some-secret' };

/** What `check-config --format json` answers for a configuration file with this content. */
export async function checkConfig(content: string) {
  const folder = mkdtempSync(join(tmpdir(), 'docs-'));
  try {
    const file = join(folder, 'killswitchd.yaml');
    writeFileSync(file, content);
    const args = ['check-config', '--config', file, '--format', 'json'];
    const { out, err, exitCode } = await ask(args, SOME_KEY);
    return { exitCode, report: out, err };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The bounds as `check-config` says them, for the timeouts that people use. */
export async function promiseTable(): Promise<string> {
  const { report } = await checkConfig(
    JSON.stringify({
      exchange: { baseUrls: ['https://exchange.example'] },
      markets: TIMEOUTS_SECONDS.map((seconds) => ({ market: `T${seconds}_USDT`, timeoutSeconds: seconds })),
      liveness: { mode: 'none' },
    }),
  );
  const { markets } = JSON.parse(report) as {
    markets: { timeoutSeconds: number; renewEverySeconds: number; promise: string[] }[];
  };
  const secondsIn = (promise: readonly string[], pattern: RegExp) =>
    promise.map((sentence) => pattern.exec(sentence)?.[1]).find((found) => found !== undefined) ?? '';
  const rows = markets.map(({ timeoutSeconds, renewEverySeconds, promise }) => [
    `${timeoutSeconds} s`,
    `${renewEverySeconds} s`,
    `${secondsIn(promise, /shorter than ([\d.]+) s/)} s`,
    `${secondsIn(promise, /network dies, .* at most ([\d.]+) s/)} s`,
  ]);
  return table(['Timeout T', 'Renewed every', 'Outage survived', 'Cancelled at the latest'], rows);
}
