/**
 * Tells killswitchd that a bot lives, and the bot whether it is protected. This file needs nothing but Node 20 or later:
 * `import { KillSwitch } from 'killswitchd/bot'`.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface KillSwitchOptions {
  /** unix:/PATH or HOST:PORT, as in the daemon's `control.listen`; else KILLSWITCHD_CONTROL. */
  readonly control?: string;
  /** Name of the bot; else KILLSWITCHD_BOT, else the only one. */
  readonly bot?: string;
  /** The file with the token for HOST:PORT; else KILLSWITCHD_CONTROL_TOKEN_FILE. */
  readonly tokenFile?: string;
  /** How long a beat waits for its answer; 2 unless given. */
  readonly timeoutSeconds?: number;
  /** Rejects with a `KillSwitchError` where the daemon does not answer or refuses the word. */
  readonly raises?: boolean;
  /** Told when a word fails or does not count, once for each reason; `console.warn` unless given. */
  readonly warn?: (problem: string) => void;
}

/** What a beat is answered about one market. */
export interface MarketReply {
  readonly state: string;
  readonly armed: boolean;
  readonly expiresInSeconds: number | null;
  /** Unix seconds on the clock of the daemon's host. */
  readonly expiresAt: number | null;
}

/** An answer, as docs/http.md describes it. */
export interface Reply {
  readonly armed?: boolean;
  readonly counted?: boolean;
  readonly why?: string;
  readonly done?: boolean;
  readonly markets?: Readonly<Record<string, MarketReply>>;
  readonly marketsOmitted?: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/** The daemon did not answer, or refused the word. */
export class KillSwitchError extends Error {
  override readonly name = 'KillSwitchError';
}

/** Nothing was sent. */
class NotAsked extends Error {}

type Word = 'beat' | 'goodbye' | 'fail';
const PAUSE_SECONDS = 0.5;
/** The longest that a timer of Node can be set for. */
const LONGEST_MS = 2 ** 31 - 1;
const MOST_CHARS = 1 << 20;

/**
 * Beat from the loop that decides what to trade, at least every 5 seconds, and never from a timer or worker of its own:
 * that would go on while the loop hangs. Where a beat is not answered, nobody knows whether the timers still stand: hold
 * new orders back and go on beating.
 */
export class KillSwitch {
  readonly #options: KillSwitchOptions;
  readonly #timeoutSeconds: number;
  readonly #control: string;
  readonly #address: { readonly socketPath: string } | { readonly host: string; readonly port: string };
  // By these the daemon tells a beat from a copy of an older one that was held up on its way.
  readonly #session = randomUUID();
  #seq = 0;
  #asked = now();
  #unheard: string | null = null;
  #problem: string | null = null;
  #reply: Reply = {};

  /** Throws where the address cannot be read. */
  constructor(options: KillSwitchOptions = {}) {
    const { env } = process;
    const bot = options.bot ?? env['KILLSWITCHD_BOT'];
    const tokenFile = options.tokenFile ?? env['KILLSWITCHD_CONTROL_TOKEN_FILE'];
    this.#options = { ...options, ...(bot ? { bot } : {}), ...(tokenFile ? { tokenFile } : {}) };
    this.#timeoutSeconds = options.timeoutSeconds ?? 2;
    this.#control = options.control || env['KILLSWITCHD_CONTROL'] || 'unix:/run/killswitchd/control.sock';
    this.#address = readAddress(this.#control);
  }

  /** Why the last word failed or did not count; null where all is well. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The answer to the last beat; empty where there was none. */
  get reply(): Reply {
    return this.#reply;
  }

  /** Says that the bot lives. True where all its markets are armed: orders may go out. */
  async beat(): Promise<boolean> {
    return this.#result(await this.#say('beat'));
  }

  /**
   * Whether the answer to the last beat was "armed", and what it promised still holds: of all markets of the bot, or of
   * one. Asks nobody.
   */
  armed(market?: string): boolean {
    const { armed, markets = {}, marketsOmitted } = this.#reply;
    const one = market !== undefined && Object.hasOwn(markets, market) ? markets[market] : undefined;
    if (one !== undefined) return this.#holds(one);
    if (market !== undefined && !marketsOmitted) return false;
    return armed === true && Object.values(markets).every((each) => this.#holds(each));
  }

  /** Beats until all markets are armed. False where that takes longer: go into the loop, which holds orders back. */
  async waitArmed(timeoutSeconds = 60): Promise<boolean> {
    const untilMs = now()[0] + timeoutSeconds * 1000;
    const left = () => Math.max(0, untilMs - now()[0]) / 1000;
    const beat = () => this.#say('beat', Math.min(this.#timeoutSeconds, left() + PAUSE_SECONDS));
    while (!(await beat()) && left() > 0) await sleep(Math.min(PAUSE_SECONDS, left()) * 1000);
    return this.#result(this.armed());
  }

  /** Says that the bot ends on purpose and has no orders left. True once the daemon has ended the timers. */
  async goodbye(timeoutSeconds = 10): Promise<boolean> {
    return this.#result(await this.#say('goodbye', timeoutSeconds));
  }

  /** Says that the bot is broken: nothing is renewed any more, and the exchange cancels its orders. */
  async fail(): Promise<boolean> {
    return this.#result(await this.#say('fail'));
  }

  /** Says goodbye when `work` is over, after which the daemon deletes the timers, and `fail` where it throws. */
  async run<T>(work: (killSwitch: this) => Promise<T>): Promise<T> {
    let word: Word = 'fail';
    try {
      const result = await work(this);
      word = 'goodbye';
      return result;
    } finally {
      await this.#say(word, word === 'goodbye' ? 10 : undefined);
    }
  }

  #holds({ armed, expiresInSeconds }: MarketReply): boolean {
    // By two clocks: the monotonic one stands still while the host sleeps, and the other one can be set back.
    const current = now();
    const leftMs = (expiresInSeconds ?? 0) * 1000;
    return armed && this.#asked.every((thenMs, clock) => (current[clock] ?? 0) - thenMs < leftMs);
  }

  #result(result: boolean): boolean {
    if (this.#options.raises === true && this.#unheard !== null) throw new KillSwitchError(this.#unheard);
    return result;
  }

  async #say(word: Word, timeoutSeconds = this.#timeoutSeconds): Promise<boolean> {
    let reply: Reply = {};
    let armed = false;
    const asked = now();
    try {
      reply = await this.#post(word, timeoutSeconds);
      this.#unheard = reply.error?.message ?? null;
      // After a goodbye and a failure nothing is known to be armed.
      this.#reply = word === 'beat' && this.#unheard === null ? reply : {};
      this.#asked = asked;
      armed = this.armed();
    } catch (error) {
      this.#reply = {};
      const why = error instanceof Error ? error.message : String(error);
      this.#unheard = error instanceof NotAsked ? why : `no answer from ${this.#control}: ${why}`;
    }
    let problem = this.#unheard;
    if (problem === null && reply.counted !== true)
      problem = `the ${word} did not count: ${reply.why ?? 'no reason given'}`;
    else if (problem === null && word === 'goodbye' && reply.done !== true)
      problem = `the goodbye is not done: ${JSON.stringify(reply.markets)}`;
    if (problem !== null && problem !== this.#problem) (this.#options.warn ?? console.warn)(problem);
    this.#problem = problem;
    return word === 'beat' ? armed : problem === null;
  }

  #readToken(file: string): string {
    try {
      return readFileSync(file, 'utf8').replaceAll(/\s/g, '');
    } catch (error) {
      const named = 'the file of the token, from tokenFile or KILLSWITCHD_CONTROL_TOKEN_FILE,';
      throw new NotAsked(`${this.#control} was not asked: ${named} cannot be read: ${String(error)}`);
    }
  }

  #post(word: Word, timeoutSeconds: number): Promise<Reply> {
    const { bot, tokenFile } = this.#options;
    this.#seq += 1;
    const waitSeconds = word === 'goodbye' ? Math.max(0, Math.min(60, timeoutSeconds - 1)) : undefined;
    const said = { session: this.#session, seq: this.#seq, bot: bot || undefined, waitSeconds };
    const body = JSON.stringify(said);
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (tokenFile && 'host' in this.#address)
      headers['authorization'] = `Bearer ${this.#readToken(tokenFile)}`;
    const signal = AbortSignal.timeout(Math.max(0, Math.min(Math.ceil(timeoutSeconds * 1000), LONGEST_MS)));
    const options = { ...this.#address, method: 'POST', path: `/v1/${word}`, headers, signal, agent: false };
    return new Promise((resolve, reject) => {
      const failed = (error: Error) => reject(signal.aborted ? new Error('timed out') : error);
      const call = request(options, (response) => {
        let text = '';
        response.setEncoding('utf8').on('error', failed);
        response.on('data', (chunk: string) => {
          text += chunk;
          if (text.length > MOST_CHARS) response.destroy(new Error('the answer is too long'));
        });
        response.on('end', () => {
          const reply = readReply(text, response.statusCode);
          if (reply !== null) resolve(reply);
          else reject(new Error(`HTTP ${response.statusCode} is no answer of killswitchd`));
        });
      });
      // The last word about an answer of another protocol is its end.
      call.on('close', () => reject(new Error('no answer of killswitchd')));
      call.on('error', failed).end(body);
    });
  }
}

/** Null where it is none. Some gateways answer with a body that they have kept. */
function readReply(text: string, status = 0): Reply | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    const isOurs = 'error' in value || ('counted' in value && status < 500);
    return isOurs ? (value as Reply) : null;
  } catch {
    return null;
  }
}

/** Monotonic and wall clock, milliseconds. */
function now(): readonly [number, number] {
  return [performance.now(), Date.now()];
}

function readAddress(control: string) {
  if (control.startsWith('unix:/')) return { socketPath: control.slice('unix:'.length) };
  const [, host, port] = /^([^\s:]+|\[[\d:a-f]+\]):(\d+)$/i.exec(control) ?? [];
  if (host === undefined || port === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw new TypeError(
      `control, or KILLSWITCHD_CONTROL: found "${control}"; allowed: unix:/PATH or HOST:PORT`,
    );
  return { host: host.replace(/^\[|\]$/g, ''), port };
}
