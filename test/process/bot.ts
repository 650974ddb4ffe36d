import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KillSwitch } from '../../src/library/bot.ts';

/**
 * A bot as a process of its own. Its arguments say how it shows that it lives: `quietly` (by running), `beat`,
 * `file PATH`, or `http` at a free port. It prints a line of JSON for its start and for every signal. SIGTERM ends it cleanly, with the
 * exit code of BOT_EXIT_CODE; with BOT_STUBBORN it goes on. It ends when its parent has, so that no test leaves it
 * behind, but for the one that sets BOT_OUTLIVES.
 */
export interface BotLine {
  readonly bot: 'started' | NodeJS.Signals;
  readonly pid: number;
  /** Unix milliseconds. */
  readonly atMs: number;
  /** The variables of the daemon that it was given. */
  readonly env: Readonly<Record<string, string>>;
  /** Where it answers with `http`; else 0. */
  readonly port: number;
}

const [how, target = ''] = process.argv.slice(2);

function print(bot: BotLine['bot'], port = 0): void {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name.startsWith('KILLSWITCHD_')),
  ) as Record<string, string>;
  const line: BotLine = { bot, pid: process.pid, atMs: Date.now(), env, port };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

for (const signal of ['SIGHUP', 'SIGINT', 'SIGUSR1', 'SIGUSR2', 'SIGTERM'] as const) {
  process.on(signal, () => {
    print(signal);
    if (signal === 'SIGTERM' && process.env['BOT_STUBBORN'] === undefined) {
      process.exit(Number(process.env['BOT_EXIT_CODE'] ?? 0));
    }
  });
}
const parent = process.ppid;
let round = 0;
const killSwitch = new KillSwitch();
setInterval(() => {
  if (process.ppid !== parent && process.env['BOT_OUTLIVES'] === undefined) process.exit(1);
  round += 1;
  if (how === 'file') writeFileSync(target, String(round));
  if (how === 'beat') void killSwitch.beat();
}, 200);
if (how === 'http') {
  const server = createServer((_request, response) => response.end());
  server.listen(0, '127.0.0.1', () => print('started', (server.address() as AddressInfo).port));
} else {
  print('started');
}
