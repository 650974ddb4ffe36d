import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BotWord } from '../core/events.ts';
import { COMMANDS, type CommandName, type Progress } from '../core/operate.ts';
import type { Clock } from '../ports.ts';
import {
  chooseBot,
  chooseMarkets,
  type Input,
  type InputKey,
  readInput,
  readQuery,
} from './control-input.ts';
import { ControlRefusal, errorBody } from './control-refusal.ts';
import type { Answer, Send } from './control-send.ts';
import type { ControlSources, ReloadReport } from './control-sources.ts';
import { createViews, describeFiring, type Views } from './control-view.ts';
import { onOver } from './share.ts';

/** What one request is about. */
interface Call {
  readonly input: Input;
  /** The bot that the query names. */
  readonly bot: string | undefined;
  /** On the monotonic clock. */
  readonly arrivedMs: number;
  /** Calls `run` once nobody waits for the answer any more: it was sent, or the connection has ended. */
  readonly onOver: (run: () => void) => void;
}

interface Route {
  readonly method: 'GET' | 'POST';
  readonly keys: readonly InputKey[];
  readonly needs: readonly InputKey[];
  /** Whether the bot may stand in the query. */
  readonly ofBot: boolean;
  /** A beat is one whatever follows it, and reading changes nothing. */
  readonly atOnce: boolean;
  readonly answer: (call: Call) => Answer | Promise<Answer>;
}

export type ControlRoutes = ReadonlyMap<string, Route>;

const DEFAULT_WAIT_SECONDS = 15;
/** Commands that are waited for at one time. */
const MAX_COMMANDS = 64;
/** The same with commands whose askers have gone: what they asked for goes on, and is looked at in every turn. */
const MAX_UNDER_WAY = 512;
const MOST_REASONS = 100;

/** Everything that can be asked, by path. One of these serves all listeners. */
export function createRoutes(sources: ControlSources): ControlRoutes {
  const views = createViews(sources);
  const inSlot = createSlots();
  const commands = COMMANDS.map(
    (name) => [`/v1/${name}`, commandRoute(sources, views, inSlot, name)] as const,
  );
  return new Map<string, Route>([
    ['/v1/beat', { ...WORD, atOnce: true, answer: (call) => beat(sources, views, call) }],
    [
      '/v1/goodbye',
      {
        ...WORD,
        keys: [...WORD.keys, 'waitSeconds'],
        answer: (call) => inSlot(call, () => goodbye(sources, views, call)),
      },
    ],
    ['/v1/fail', { ...WORD, answer: (call) => fail(sources, views, call) }],
    ...commands,
    [
      '/v1/reload',
      {
        ...PLAIN,
        keys: ['waitSeconds'],
        answer: (call) => inSlot(call, () => reload(sources, views, call.input)),
      },
    ],
    [
      '/v1/log-level',
      {
        ...PLAIN,
        keys: ['level', 'forSeconds'],
        answer: ({ input }) => setLogLevel(sources, input),
      },
    ],
    ['/v1/status', { ...READ, answer: async () => ({ status: 200, body: await sources.status() }) }],
    ['/v1/health', { ...READ, answer: () => health(views) }],
  ]);
}

const PLAIN = { method: 'POST', keys: [], needs: [], ofBot: false, atOnce: false } as const;
const READ = { ...PLAIN, method: 'GET', atOnce: true } as const;
const WORD = { ...PLAIN, keys: ['bot', 'session', 'seq'], ofBot: true } as const;

function json(status: number, value: unknown): Answer {
  return { status, body: `${JSON.stringify(value)}\n` };
}

type InSlot = <T>(call: Call, work: () => Promise<T>) => Promise<T>;

/** Whoever gives up asking leaves the place to others, up to a limit: an emergency hardly ever waits for what nobody waits for. */
function createSlots(): InSlot {
  let waitedFor = 0;
  let underWay = 0;
  return async ({ onOver }, work) => {
    if (waitedFor >= MAX_COMMANDS || underWay >= MAX_UNDER_WAY) {
      throw new ControlRefusal('too_many_commands', `${underWay} commands are under way; try again`);
    }
    waitedFor += 1;
    underWay += 1;
    let waits = true;
    const leave = (): void => {
      if (waits) waitedFor -= 1;
      waits = false;
    };
    onOver(leave);
    try {
      return await work();
    } finally {
      leave();
      underWay -= 1;
    }
  };
}

/** Takes a bot's word in, as old as its request is. */
function take(sources: ControlSources, says: BotWord, { input, bot: queried, arrivedMs }: Call) {
  const bot = chooseBot(queried, input.bot, sources.bots());
  const proof = { session: input.session ?? null, seq: input.seq ?? null };
  return { bot, heard: sources.hear(bot, says, proof, Math.max(0, sources.clock.now().monoMs - arrivedMs)) };
}

function beat(sources: ControlSources, views: Views, call: Call): Answer {
  const { bot, heard } = take(sources, 'beat', call);
  const { armed, listed } = views.bot(bot);
  const ttlSeconds = sources.ttlMs() / 1000;
  const head = JSON.stringify({ armed, ...heard, bot, ttlSeconds });
  return { status: 200, body: `${head.slice(0, -1)},${listed}}\n` };
}

async function goodbye(sources: ControlSources, views: Views, call: Call): Promise<Answer> {
  const { bot, heard } = take(sources, 'goodbye', call);
  if (!heard.counted) return json(409, { ...heard, bot, done: false, markets: [] });
  const progress = await sources.afterGoodbye(bot, waitMs(call.input));
  views.forget();
  return json(statusOf(progress), { ...heard, bot, ...describeProgress(progress) });
}

function fail(sources: ControlSources, views: Views, call: Call): Answer {
  const { bot, heard } = take(sources, 'fail', call);
  const markets = describeFiring(views.markets(bot), sources.clock.now().wallMs);
  return json(heard.counted ? 200 : 409, { ...heard, bot, ...markets });
}

function commandRoute(sources: ControlSources, views: Views, inSlot: InSlot, does: CommandName): Route {
  const operate = async ({ input }: Call): Promise<Answer> => {
    const markets = chooseMarkets(input.markets, sources.markets(), sources.elsewhere);
    const forMs = Math.round((input.forSeconds ?? 0) * 1000);
    const progress = await sources.operate({ does, markets, forMs }, waitMs(input));
    views.forget();
    return json(statusOf(progress), describeProgress(progress));
  };
  const pauses = does === 'pause';
  return {
    ...PLAIN,
    keys: pauses ? ['markets', 'forSeconds', 'waitSeconds'] : ['markets', 'waitSeconds'],
    needs: pauses ? ['forSeconds'] : [],
    answer: (call) => inSlot(call, () => operate(call)),
  };
}

function waitMs({ waitSeconds }: Input): number {
  return Math.round((waitSeconds ?? DEFAULT_WAIT_SECONDS) * 1000);
}

function statusOf(progress: readonly Progress[]): number {
  if (progress.some(({ state }) => state === 'impossible')) return 409;
  return progress.every(({ state }) => state === 'done') ? 200 : 202;
}

function describeProgress(progress: readonly Progress[]) {
  return { done: progress.every(({ state }) => state === 'done'), markets: progress };
}

async function reload(sources: ControlSources, views: Views, input: Input): Promise<Answer> {
  const report: ReloadReport = await sources.reload(waitMs(input));
  views.forget();
  switch (report.kind) {
    case 'unchanged':
      return json(200, { result: 'unchanged' });
    case 'applied': {
      const { added, removed, moved, changed, progress } = report;
      return json(200, {
        result: 'applied',
        added,
        removed,
        moved,
        changed,
        ...describeProgress(progress),
      });
    }
    case 'rejected': {
      const { problems } = report;
      const text = `nothing was changed: the configuration has ${problems.length} ${problems.length === 1 ? 'mistake' : 'mistakes'}`;
      return { status: 422, body: errorBody('config_rejected', text, { problems }) };
    }
  }
}

function setLogLevel(sources: ControlSources, { level, forSeconds }: Input): Answer {
  const before = sources.logLevel();
  if (level === undefined) {
    if (forSeconds === undefined) return json(200, { level: before, before, forSeconds: null });
    throw new ControlRefusal('invalid_value', 'forSeconds: found without a level; allowed: both, or neither');
  }
  sources.setLogLevel(level, forSeconds === undefined ? null : Math.round(forSeconds * 1000));
  return json(200, { level: sources.logLevel(), before, forSeconds: forSeconds ?? null });
}

function health(views: Views): Answer {
  const { live, ready, notReady, nothingGuarded } = views.snapshot();
  const omitted = notReady.length - MOST_REASONS;
  const more = omitted > 0 ? { notReadyOmitted: omitted } : {};
  return json(200, { live, ready, notReady: notReady.slice(0, MOST_REASONS), ...more, nothingGuarded });
}

/** What a listener gives its routes. */
export interface RouteTools {
  readonly clock: Clock;
  /** When a request came in, on the monotonic clock. */
  readonly arrivedMs: (request: FastifyRequest) => number;
  /** False where the request must not be carried out any more. */
  readonly begin: (reply: FastifyReply) => boolean;
  /** Calls `run` when it is its turn among all requests. */
  readonly inTurn: (run: () => void) => void;
  readonly send: Send;
}

/** Adds the routes to one listener. */
export function addRoutes(app: FastifyInstance, routes: ControlRoutes, tools: RouteTools): void {
  const { clock, arrivedMs, begin, inTurn, send } = tools;
  for (const [path, { method, keys, needs, ofBot, atOnce, answer }] of routes) {
    app.route({
      method,
      url: path,
      handler: async (request, reply) => {
        const { bot } = readQuery(request.query, ofBot ? ['bot'] : []);
        const input = readInput(method === 'GET' ? undefined : request.body, keys, needs);
        const call = {
          input,
          bot,
          arrivedMs: arrivedMs(request),
          onOver: (run: () => void) => onOver(reply, run),
        };
        if (atOnce) return begin(reply) ? send(reply, await answer(call)) : reply.hijack();
        // In the next turn it is known what followed in the same bytes.
        await new Promise<void>((resolve) => void clock.after(0, resolve));
        const answered = await new Promise<Answer | null>((resolve, reject) =>
          inTurn(() => {
            if (!begin(reply)) resolve(null);
            else Promise.try(answer, call).then(resolve, reject);
          }),
        );
        return answered === null ? reply.hijack() : send(reply, answered);
      },
    });
  }
}
