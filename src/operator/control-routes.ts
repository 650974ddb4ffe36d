import type { ErrorObject } from 'ajv';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { XStatic } from 'typebox/schema';
import { type BotWord, COMMANDS, type CommandName, type Progress } from '../core/events.ts';
import type { Snapshot } from '../core/view.ts';
import { type Commanded, LOG_LEVELS } from '../ports.ts';
import { didYouMean } from '../util/nearest.ts';
import { counted, describeValue, listed, plain } from '../util/text.ts';
import { ControlRefusal, type ControlSources, type MarketGlance } from './control-sources.ts';
import { judgeReady, ofBot } from './health.ts';
import { connectionOf } from './listen.ts';
import { createSender, shareWhileFresh } from './share.ts';
import { toSeconds } from './status.ts';

const DEFAULT_WAIT_SECONDS = 15;
/** Commands whose answers wait for the timers at one time. */
const MOST_WAITING = 256;
const MOST_REASONS = 100;
/** Characters of what a command's sender says. */
const LONGEST_SHOWN = 200;

const printable = (most: number) => {
  const pattern = String.raw`^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,${most}}$`;
  return { type: 'string', pattern, description: `a text of 1 to ${most} printable characters` } as const;
};

/** What a request may say; ajv checks it against this. A description is what a refusal names as allowed. */
const KEYS = {
  bot: { type: 'string', minLength: 1, description: "a bot's name" },
  session: printable(64),
  seq: {
    type: 'integer',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  },
  markets: {
    type: 'array',
    minItems: 1,
    items: { type: 'string', minLength: 1 },
    description: 'a list of at least one market, such as ["BTC_USDT"]; without the key all of them are meant',
  },
  forSeconds: { type: 'number', minimum: 1, maximum: 86_400, description: 'a number from 1 to 86400' },
  waitSeconds: { type: 'number', minimum: 0, maximum: 60, description: 'a number from 0 to 60' },
  level: { enum: LOG_LEVELS, description: LOG_LEVELS.join(', ') },
  reason: printable(LONGEST_SHOWN),
  verbose: { enum: ['', '1', 'true'], description: 'no value, 1 or true' },
  exclude: { enum: ['bots'], description: 'bots' },
  view: { enum: ['page'], description: 'page' },
  find: { type: 'string', description: 'one text' },
} as const;
type Key = keyof typeof KEYS;

type Input = { readonly [K in Key]?: XStatic<(typeof KEYS)[K]> };

declare module 'fastify' {
  interface FastifyRequest {
    /** When its first byte came in, monotonic; over which listener, and who can use that. */
    arrival: { readonly monoMs: number; readonly via: string };
  }
}

type Call = FastifyRequest<{ Body: Input; Querystring: { readonly bot?: string } }>;

type Answer = readonly [status: number, body: object];

/** `shared`: one snapshot for all that ask for the health at about the same time. */
type RouteSources = ControlSources & { readonly shared: () => Promise<Snapshot> };
type Handler = (daemon: RouteSources, call: Call) => Answer | Promise<Answer>;

interface Route {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  /** What the body may say, and of it `bot` in the query as well. */
  readonly keys: readonly Key[];
  readonly needs?: readonly Key[];
  readonly answer: Handler;
}

const post = (path: string, answer: Handler, ...keys: readonly Key[]): Route => {
  return { path, method: 'POST', keys, answer };
};
const OF_BOT = ['bot', 'session', 'seq'] as const;
const ROUTES: readonly Route[] = [
  post('/v1/beat', beat, ...OF_BOT),
  post('/v1/goodbye', goodbye, ...OF_BOT, 'waitSeconds'),
  post('/v1/fail', fail, ...OF_BOT),
  ...COMMANDS.map((does): Route => {
    const needs: readonly Key[] = does === 'pause' ? ['forSeconds'] : [];
    return { ...post(`/v1/${does}`, operate(does), 'markets', ...needs, 'waitSeconds', 'reason'), needs };
  }),
  post('/v1/ack', acknowledge, 'markets', 'reason'),
  post('/v1/reload', reload, 'waitSeconds', 'reason'),
  post('/v1/log-level', setLogLevel, 'level', 'forSeconds', 'reason'),
  { path: '/v1/status', method: 'GET', keys: [], answer: async ({ status }) => [200, await status()] },
  { path: '/v1/health', method: 'GET', keys: ['bot'], answer: health },
];
export const METHODS: ReadonlyMap<string, string> = new Map(ROUTES.map(({ path, method }) => [path, method]));

/** Returns what adds the routes to a listener: all listeners share one. */
export function createRoutes(sources: ControlSources) {
  const daemon: RouteSources = { ...sources, shared: shareWhileFresh(sources.clock, sources.snapshot) };
  const send = createSender(daemon.clock, 'too many read the status; try again');
  let waiting = 0;
  /** Where too many wait, a word of a bot and a command still count: only the answer does not wait for the timers. */
  const carryOut = async ({ answer }: Route, call: Call): Promise<Answer> => {
    if (waiting >= MOST_WAITING) call.body = { ...call.body, waitSeconds: 0 };
    waiting += 1;
    try {
      return await answer(daemon, call);
    } finally {
      waiting -= 1;
    }
  };
  const handle = async (route: Route, call: Call, reply: FastifyReply) => {
    // A beat counts whatever follows it, and a read changes nothing: both are answered at once.
    const atOnce = route.path === '/v1/beat' || route.method === 'GET';
    // In the next turn it is known whether something unreadable followed in the same bytes.
    if (!atOnce) await new Promise<void>((next) => void daemon.clock.after(0, next));
    const connection = connectionOf(call.raw.socket);
    if (connection.broken) return reply.hijack();
    connection.hasBegun = true;
    const [status, body] = await (atOnce ? route.answer(daemon, call) : carryOut(route, call));
    void reply.code(status);
    if (Buffer.isBuffer(body)) return send(reply, async () => body);
    return reply.send(`${JSON.stringify(body)}\n`);
  };
  return (app: FastifyInstance): void => {
    for (const route of ROUTES) {
      const { path, method, keys, needs = [] } = route;
      const body = method === 'GET' ? {} : { body: objectOf(keys, needs) };
      const { schema: query } = queriedWith(...keys.filter((key) => key === 'bot'));
      const schema = { ...body, ...query };
      app.route({ method, url: path, schema, handler: (call, reply) => handle(route, call as Call, reply) });
    }
  };
}

function objectOf(keys: readonly Key[], required: readonly Key[]) {
  const properties = Object.fromEntries(keys.map((key) => [key, KEYS[key]]));
  return { type: 'object', properties, required, additionalProperties: false };
}

/** Lets a route's query have these keys, and no others. */
export const queriedWith = (...keys: readonly Key[]) => ({ schema: { querystring: objectOf(keys, []) } });

export function describeMistake(mistakes: readonly unknown[], place: string): ControlRefusal {
  const { keyword, instancePath, params, data, parentSchema } = mistakes[0] as ErrorObject;
  const { properties, enum: values = [] } = parentSchema as { properties?: object; enum?: readonly string[] };
  const known = Object.keys(properties ?? {});
  const where = place === 'querystring' ? 'the query' : 'the body';
  if (keyword === 'additionalProperties') {
    const key = String(params['additionalProperty']);
    const found = `${where}: found the unknown key ${describeValue(key)}`;
    const allowed = `${listed(known) || 'none'}${didYouMean(key, known)}`;
    return new ControlRefusal('unknown_key', `${found}; allowed: ${allowed}`);
  }
  if (keyword === 'required') {
    const key = String(params['missingProperty']) as Key;
    return new ControlRefusal('invalid_value', `${key} is missing; allowed: ${KEYS[key].description}`);
  }
  const [key, ...rest] = instancePath.split('/').slice(1);
  if (key === undefined) {
    const allowed = `an object with the keys ${known.join(', ') || 'none'}, or nothing`;
    return new ControlRefusal('invalid_value', `${where}: found ${describeValue(data)}; allowed: ${allowed}`);
  }
  const meant = typeof data === 'string' ? didYouMean(data, values) : '';
  const at = [where === 'the query' ? `${where}: ${key}` : key, ...rest].join('.');
  const text = `${at}: found ${describeValue(data)}; allowed: ${KEYS[key as Key].description}${meant}`;
  return new ControlRefusal('invalid_value', text);
}

function announce(daemon: ControlSources, command: string, call: Call, markets: Commanded['markets']) {
  // It is cut last: a cut before would leave the beginning of a secret standing.
  const shown = (text = '') => daemon.hide(text).slice(0, LONGEST_SHOWN) || null;
  const { body, headers, arrival } = call;
  const [reason, sender] = [shown(body.reason), shown(plain(headers['user-agent'] ?? ''))];
  daemon.onCommand({ command, markets, reason, sender, via: arrival.via });
}

/** Takes a bot's word in, as old as its request is. */
function takeWord({ bots, hear, clock }: ControlSources, says: BotWord, { body, query, arrival }: Call) {
  const bot = chooseBot(query.bot, body.bot, bots());
  const proof = { session: body.session ?? null, seq: body.seq ?? null };
  return { bot, heard: hear(bot, says, proof, Math.max(0, clock.now().monoMs - arrival.monoMs)) };
}

function beat(daemon: ControlSources, call: Call): Answer {
  const { bot, heard } = takeWord(daemon, 'beat', call);
  const { armed, ...markets } = describeBot(bot, daemon);
  return [200, { armed, ...heard, bot, ttlSeconds: daemon.ttlMs() / 1000, ...markets }];
}

async function goodbye(daemon: ControlSources, call: Call): Promise<Answer> {
  const { bot, heard } = takeWord(daemon, 'goodbye', call);
  if (!heard.counted) return [409, { ...heard, bot, done: false, markets: [] }];
  return answerOf(await daemon.afterGoodbye(bot, waitMs(call.body)), { ...heard, bot });
}

function fail(daemon: ControlSources, call: Call): Answer {
  const { bot, heard } = takeWord(daemon, 'fail', call);
  return [heard.counted ? 200 : 409, { ...heard, bot, ...describeFiring(bot, daemon) }];
}

function operate(does: CommandName): Handler {
  return async (daemon, call) => {
    const markets = chooseMarkets(daemon, call.body.markets, daemon.markets());
    announce(daemon, does, call, markets);
    const forMs = Math.round((call.body.forSeconds ?? 0) * 1000);
    return answerOf(await daemon.operate({ does, markets, forMs }, waitMs(call.body)));
  };
}

function waitMs({ waitSeconds }: Input): number {
  return Math.round((waitSeconds ?? DEFAULT_WAIT_SECONDS) * 1000);
}

function answerOf(progress: readonly Progress[], more: object = {}): Answer {
  const done = progress.every(({ state }) => state === 'done');
  const isImpossible = progress.some(({ state }) => state === 'impossible');
  return [isImpossible ? 409 : done ? 200 : 202, { ...more, done, markets: progress }];
}

function acknowledge(daemon: ControlSources, call: Call): Answer {
  const known = new Set([...daemon.markets(), ...daemon.cancelled()]);
  const markets = chooseMarkets(daemon, call.body.markets, [...known]);
  announce(daemon, 'ack', call, markets);
  return [200, daemon.acknowledge(markets)];
}

async function reload(daemon: ControlSources, call: Call): Promise<Answer> {
  announce(daemon, 'reload', call, null);
  const report = await daemon.reload(waitMs(call.body));
  const { authorised, markets } = daemon.snapshot();
  // Markets that the exchange refuses, changed or not. Where it refuses the key, nothing is known of a market.
  const rejected = markets.filter(({ state, leaving }) => authorised && state === 'rejected' && !leaving);
  const refused = rejected.length === 0 ? undefined : rejected.map(({ market }) => market);
  if (report.kind === 'unchanged') return [200, { result: 'unchanged', refused }];
  if (report.kind === 'applied') {
    const { kind: result, progress, ...changes } = report;
    return [200, answerOf(progress, { result, ...changes, refused })[1]];
  }
  const { problems } = report;
  const message = `nothing was changed, because of ${counted(problems.length, 'problem')}`;
  return [422, { error: { code: 'config_rejected', message, problems } }];
}

function setLogLevel(daemon: ControlSources, call: Call): Answer {
  const { level, forSeconds } = call.body;
  const before = daemon.logLevel();
  if (level !== undefined) {
    announce(daemon, 'log-level', call, null);
    daemon.setLogLevel(level, forSeconds === undefined ? null : Math.round(forSeconds * 1000));
  } else if (forSeconds !== undefined)
    throw new ControlRefusal('invalid_value', 'forSeconds: found without a level; allowed: both, or neither');
  return [200, { level: daemon.logLevel(), before, forSeconds: forSeconds ?? null }];
}

async function health(daemon: RouteSources, { query }: Call): Promise<Answer> {
  const snapshot = ofBot(await daemon.shared(), query.bot);
  const { live, ready, notReady, nothingGuarded } = snapshot;
  const { ok, checks } = judgeReady(snapshot, false);
  const reasons = checks.flatMap(({ name, failed }) => (failed === null ? [] : `${name}: ${failed}`));
  const withoutBots = { ready: ok, notReady: reasons };
  const shown = notReady.slice(0, MOST_REASONS);
  const notReadyOmitted = notReady.length - shown.length || undefined;
  return [200, { live, ready, notReady: shown, notReadyOmitted, nothingGuarded, withoutBots }];
}

/** Whose word a request is. Of several bots, one without a name could keep the timers of a dead one alive. */
function chooseBot(query: string | undefined, body: string | undefined, bots: readonly string[]): string {
  if (query !== undefined && body !== undefined && query !== body) {
    const found = `${describeValue(query)} in the query and ${describeValue(body)} in the body`;
    throw new ControlRefusal('invalid_value', `bot: found ${found}; name one of them`);
  }
  const name = query ?? body ?? (bots.length === 1 ? bots[0] : undefined);
  if (name === undefined) {
    const text = `bot is missing: several bots are configured; say which, as ?bot=NAME: ${listed(bots)}`;
    throw new ControlRefusal('invalid_value', text);
  }
  if (bots.includes(name)) return name;
  const text = `bot: found ${describeValue(name)}, which no market of the configuration names; allowed: ${listed(bots)}`;
  throw new ControlRefusal('unknown_bot', text + didYouMean(name, bots));
}

function chooseMarkets(daemon: ControlSources, named: Input['markets'], configured: readonly string[]) {
  if (named === undefined) return null;
  const known = new Set(configured);
  const stranger = named.find((market) => !known.has(market));
  if (stranger === undefined) return [...new Set(named)];
  const shard = daemon.elsewhere(stranger);
  const why =
    shard === null
      ? `which is not configured; configured: ${listed(configured)}${didYouMean(stranger, configured)}`
      : `which belongs to shard ${shard.index} of ${shard.count}, counted from 0: ask that daemon`;
  throw new ControlRefusal('unknown_market', `markets: found ${describeValue(stranger)}, ${why}`);
}

/** More of a bot's markets are counted and not listed; those that are not armed come first then. */
const MOST_LISTED = 200;
function listMarkets(markets: readonly MarketGlance[], describe: (market: MarketGlance) => object) {
  const shown = markets.slice(0, MOST_LISTED);
  const entries = shown.map((market) => [market.market, describe(market)]);
  const marketsOmitted = markets.length - shown.length || undefined;
  return { markets: Object.fromEntries(entries), marketsOmitted };
}

/** A reply is read within this, as a rule: what runs out before that is not promised. */
const READ_MS = 25;

/** What a beat is told: `armed` is whether every market of the bot is surely armed, and will be renewed. */
function describeBot(bot: string, { view, clock }: ControlSources) {
  const seen = view();
  const { wallMs } = clock.now();
  const isArmed = ({ state, guaranteedMs }: MarketGlance): boolean =>
    seen.phase === 'running' && (state === 'armed' || state === 'retrying') && (guaranteedMs ?? 0) > READ_MS;
  const markets = seen.marketsOf(bot);
  const unsafe = markets.filter((market) => !isArmed(market));
  const worstFirst = markets.length > MOST_LISTED ? [...new Set([...unsafe, ...markets])] : markets;
  const listing = listMarkets(worstFirst, (market) => {
    const { state, guaranteedMs } = market;
    const leftMs = guaranteedMs === null ? null : Math.max(0, guaranteedMs - READ_MS);
    return {
      state,
      armed: isArmed(market),
      expiresInSeconds: leftMs === null ? null : Math.floor(leftMs / 100) / 10,
      expiresAt: leftMs === null || leftMs === 0 ? null : toSeconds(wallMs + leftMs),
    };
  });
  return { armed: markets.length > 0 && unsafe.length === 0, ...listing };
}

function describeFiring(bot: string, { view, clock }: ControlSources): object {
  const { wallMs } = clock.now();
  return listMarkets(view().marketsOf(bot), ({ state, firesByWallMs }) => {
    const leftMs = firesByWallMs === null ? null : Math.max(0, firesByWallMs - wallMs);
    const firesInSeconds = leftMs === null ? null : Math.ceil(leftMs / 100) / 10;
    return { state, firesInSeconds, firesBy: toSeconds(firesByWallMs) };
  });
}
