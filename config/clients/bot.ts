// A bot that tells killswitchd that it lives. Needs Node 24 and nothing else.
//
//   KILLSWITCHD_CONTROL=unix:/run/killswitchd/control.sock node bot.ts
//
// Copy `createKillSwitch` into your bot and call `beat()` from the loop that decides what to trade, at least every
// 5 seconds. Never call it from a timer or worker of its own: it would go on beating while the loop hangs.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

interface Reply {
  /** True where all markets of the bot are armed now. */
  readonly armed?: boolean;
  readonly counted?: boolean;
  readonly why?: string;
  /** `expiresAt` is the Unix time until which that market is surely armed. */
  readonly markets?: Readonly<Record<string, { readonly armed: boolean; readonly expiresAt: number | null }>>;
  readonly error?: { readonly message: string };
}

/** Where the daemon listens: unix:/PATH or HOST:PORT, as in its `control.listen`. */
function addressOf(control: string) {
  if (control.startsWith('unix:')) return { socketPath: control.slice('unix:'.length) };
  const { hostname, port } = new URL(`http://${control}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function createKillSwitch(env: Readonly<Record<string, string | undefined>>) {
  const control = env['KILLSWITCHD_CONTROL'] ?? 'unix:/run/killswitchd/control.sock';
  const tokenFile = env['KILLSWITCHD_CONTROL_TOKEN_FILE'];
  const bot = env['KILLSWITCHD_BOT'] ?? 'default';
  const address = addressOf(control);
  // By these the daemon tells a beat from a copy of an older one that was held up on its way.
  const session = randomUUID();
  let seq = 0;

  function post(word: string, timeoutMs: number): Promise<Reply> {
    seq += 1;
    const body = JSON.stringify({ bot, session, seq });
    const authorization = tokenFile && `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`;
    return new Promise((resolve, reject) => {
      const call = request({
        ...address,
        method: 'POST',
        path: `/v1/${word}`,
        headers: { 'content-type': 'application/json', ...(authorization ? { authorization } : {}) },
        signal: AbortSignal.timeout(timeoutMs),
      });
      call.once('error', reject);
      call.once('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.once('error', reject);
        response.once('end', () => {
          try {
            resolve(JSON.parse(text) as Reply);
          } catch {
            reject(new Error(`HTTP ${response.statusCode} without JSON`));
          }
        });
      });
      call.end(body);
    });
  }
  async function say(word: string, timeoutMs: number): Promise<Reply> {
    try {
      const reply = await post(word, timeoutMs);
      return reply.error === undefined ? reply : { why: reply.error.message };
    } catch (error) {
      // A daemon that is away protects nobody. The bot goes on and holds its orders back.
      return { why: `no answer from ${control}: ${error instanceof Error ? error.message : String(error)}` };
    }
  }
  return {
    /** Says that the bot lives. True where all its markets are armed now: orders may go out. */
    async beat(): Promise<boolean> {
      const { armed = false, counted = false, why } = await say('beat', 2000);
      if (!counted) console.log(`the beat did not count: ${why ?? 'no reason given'}`);
      return armed;
    },
    /** Says that the bot ends on purpose and has no orders left: the daemon deletes its timers. */
    goodbye: () => say('goodbye', 10_000),
    /** Says that the bot is broken: nothing is renewed any more, and the exchange cancels its orders. */
    fail: () => say('fail', 2000),
  };
}

let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    stopping = true;
  });
}

const killSwitch = createKillSwitch(process.env);
let wasArmed: boolean | null = null;
try {
  while (!stopping) {
    const armed = await killSwitch.beat();
    if (armed !== wasArmed) {
      console.log(armed ? 'armed: orders may go out' : 'not armed: orders are held back');
      wasArmed = armed;
    }
    if (armed) {
      // Decide and place orders here.
    }
    await sleep(1000);
  }
} catch (error) {
  await killSwitch.fail();
  throw error;
}
// Cancel your orders here, before the daemon stops guarding them.
await killSwitch.goodbye();
console.log('goodbye');
