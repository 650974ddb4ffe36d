import type { XStatic } from 'typebox/schema';
import { ORDER_TYPES } from '../core/events.ts';
import { LOG_LEVELS } from '../ports.ts';
import { MARKET_PATTERN } from '../util/nearest.ts';

/** What the checks and messages read of a JSON Schema node. */
export interface SchemaNode {
  /** A list for a value that may take several forms; each keyword is about one of them. */
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly items?: SchemaNode;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly description?: string;
}

/** How the daemon may know that the bot lives. */
export const LIVENESS_MODES = ['beat', 'file', 'http', 'process', 'none'] as const;
export type LivenessMode = (typeof LIVENESS_MODES)[number];
/** What a bot may be called: it becomes the value of a metric's label, and part of a path, where dots alone lead elsewhere. */
export const BOT_PATTERN = '^(?!\\.+$)[A-Za-z0-9_.-]{1,64}$';
/** The bot of a market that names none. */
export const DEFAULT_BOT = 'default';

/** The text that a template is written as, its lines joined. */
export const joined = ({ raw }: TemplateStringsArray) => raw.join('').trim().replaceAll(/\s+/g, ' ');

/** A key of the file: what it may be, and behind that what it is for. */
const key =
  <const Shape extends object>(shape: Shape) =>
  (text: TemplateStringsArray) => ({ description: joined(text), ...shape });

/** A section of the file: an object that knows these keys and no others. */
function section<const Properties extends object>(description: string, properties: Properties) {
  return { type: 'object', properties, additionalProperties: false, description } as const;
}

const renewEverySeconds = key({ type: 'number', minimum: 1, maximum: 200, examples: [5] })`
  Seconds between two renewals. Leave it out: the cadence then follows from the timeout and the budget. At least three renewals must fit into the timeout.`;

const orderTypes = key({
  type: 'array',
  items: { enum: ORDER_TYPES },
  minItems: 1,
  uniqueItems: true,
  examples: [['spot', 'margin']],
})`
  Order types that the timer cancels. Leave it out for all of them; that includes orders placed by hand.`;

const marketName = key({ type: 'string', pattern: MARKET_PATTERN, examples: ['BTC_USDT'] })`
  Name of the market at the exchange: BASE_QUOTE.`;

const market = section('A market: its name, or a section with settings of its own.', {
  market: marketName,
  timeoutSeconds: key({ type: 'integer', minimum: 5, maximum: 600, examples: [60] })`
    Timeout of this market, whole seconds; else defaults.timeoutSeconds.`,
  types: orderTypes,
  renewEverySeconds,
  bot: key({ type: 'string', default: DEFAULT_BOT, pattern: BOT_PATTERN, examples: ['maker'] })`
    Name of the bot that trades this market, where several share the daemon.`,
});

/** The shape of the configuration file: what is checked, what `--print` shows and what is published. */
export const FileSchema = section('Configuration of killswitchd.', {
  $schema: key({ type: 'string', examples: ['./killswitchd.schema.json'] })`
    For editors; the daemon does not read it.`,
  exchange: section('The exchange. Key and secret never stand in this file.', {
    baseUrls: key({
      type: 'array',
      items: {
        type: 'string',
        pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
        examples: ['https://exchange.example'],
      },
      minItems: 1,
      examples: [['https://exchange.example']],
    })`
      Base addresses of the exchange: https://HOST[:PORT], or http:// to this host only (see allowPlainHttp). The first is used; the others only with sameAccount.`,
    allowPlainHttp: key({ type: 'boolean', default: false, examples: [true] })`
      True where a base address may be http:// to another host: a test exchange in a private network, such as the simulated one. Said at every start, since everybody on the way can read the API key.`,
    sameAccount: key({ type: 'boolean', default: false, examples: [true] })`
      True only where all base addresses serve the same account and the same timers: renewals may then go to any of them.`,
    nonce: key({ enum: ['increasing', 'window'], default: 'increasing', examples: ['window'] })`
      increasing: each request waits for the one before it, as nonces must arrive in order. window: many at a time; the exchange accepts nonces within a few seconds of its clock.`,
    budgetShare: key({ type: 'number', default: 0.5, minimum: 0.01, maximum: 1, examples: [0.8] })`
      Share of the documented limit of 10000 kill-switch requests in 10 seconds that this daemon may use. The rest is for whoever else uses the same key or address.`,
    connections: key({ type: 'integer', default: 64, minimum: 1, maximum: 1024, examples: [16] })`
      Most requests in flight at a time with nonce: window. One that is overdue does not count, nor those of a market that answers later than the others.`,
    cancellationDelaySeconds: key({ type: 'number', default: 0, minimum: 0, maximum: 60, examples: [1] })`
      How long the exchange may take to cancel orders after a timer ran out. Added to every promise about the latest moment.`,
    requestLifetimeSeconds: key({ type: 'number', default: 10, minimum: 1, maximum: 60, examples: [5] })`
      How long a request that was written can still be on its way and then be carried out. An answer is waited for that long.`,
  }),
  defaults: section('What a market gets that does not say otherwise.', {
    timeoutSeconds: key({ type: 'integer', default: 60, minimum: 5, maximum: 600, examples: [60] })`
      Timeout of the timers of markets that give none, whole seconds.`,
    renewEverySeconds,
    types: orderTypes,
  }),
  markets: key({
    type: 'array',
    items: { ...marketName, ...market, type: ['string', 'object'], required: ['market'] },
    minItems: 1,
    examples: [['BTC_USDT', { market: 'ETH_USDT', timeoutSeconds: 30 }]],
  })`
    The markets whose timers are kept armed.`,
  shard: section('This daemon as one of several that share the markets.', {
    index: key({ type: 'integer', default: 0, minimum: 0, maximum: 999, examples: [2] })`
      Which shard this daemon is, counted from 0. One that is not below the count guards nothing and waits for a larger count.`,
    count: key({ type: 'integer', default: 1, minimum: 1, maximum: 1000, examples: [4] })`
      How many daemons share the markets of this configuration. Each market belongs to one of them; a change of the count moves only the markets that it must.`,
    handoverSeconds: key({ type: 'number', default: 120, minimum: 0, maximum: 3600, examples: [300] })`
      How long a market that goes to another shard is still renewed here as well: longer than the other daemons take to learn of the new count.`,
    budget: key({ enum: ['shared', 'own'], default: 'shared', examples: ['own'] })`
      shared: the shards divide exchange.budgetShare among them. own: each has an address of its own, and the whole of it. Each has a key of its own either way.`,
  }),
  liveness: section('Evidence that the bot lives.', {
    mode: key({ enum: LIVENESS_MODES, examples: ['beat'] })`
      How the daemon knows that the bot lives. There is no default. beat: the bot says so at control.listen. file: the bot touches liveness.file. http: liveness.url answers with 2xx. process: the bot runs as a child of killswitchd exec. none: it does not know; timers are renewed for as long as the daemon runs.`,
    file: key({ type: 'string', minLength: 1, examples: ['/run/bots/{bot}.alive'] })`
      For mode file: the file that the bot touches. {bot} stands for the name of the bot, and must be there where several bots share the daemon.`,
    url: key({ type: 'string', minLength: 1, examples: ['http://127.0.0.1:8080/{bot}/alive'] })`
      For mode http: the address of the bot that is asked, http or https, on this host or in a private network. {bot} stands for the name of the bot, as in liveness.file.`,
    probeEverySeconds: key({ type: 'number', minimum: 0.25, maximum: 200, examples: [2] })`
      For modes file, http and process: seconds between two looks at the bot, less than a third of ttlSeconds. Left out, 5 for http and 1 for the others, but no more than a quarter of ttlSeconds.`,
    ttlSeconds: key({ type: 'number', default: 15, minimum: 1, maximum: 600, examples: [15] })`
      How long one sign of life counts.`,
    startupGraceSeconds: key({ type: 'number', default: 60, minimum: 0, maximum: 3600, examples: [120] })`
      How long the bot may take to give its first sign of life after the daemon started.`,
    onStale: key({ enum: ['expire', 'trip'], default: 'expire', examples: ['trip'] })`
      When the bot is silent: expire stops renewing and lets the timers run out; trip sets them to 5 seconds.`,
  }),
  onLapse: key({ enum: ['rearm', 'hold'], default: 'rearm', examples: ['hold'] })`
    After a timer ran out against all efforts: rearm makes a new one at once, hold leaves the market alone until an operator arms it.`,
  shutdown: section('What happens on SIGTERM and SIGINT.', {
    policy: key({ enum: ['delete', 'keep', 'handoff'], default: 'delete', examples: ['handoff'] })`
      What a deliberate stop does with the timers: delete removes them, keep lets them run out, handoff renews them once more in full for the next process.`,
    budgetSeconds: key({ type: 'number', default: 8, minimum: 1, maximum: 300, examples: [20] })`
      How long a stop may take. Stay below what the service manager allows.`,
  }),
  ping: section('The watch over the base addresses. A ping never decides about a renewal.', {
    everySeconds: key({ type: 'number', default: 5, minimum: 1, maximum: 60, examples: [10] })`
      Seconds between two pings of each base address.`,
  }),
  web: section('The web listener, which can only be read.', {
    listen: key({
      type: 'array',
      items: { type: 'string', examples: ['127.0.0.1:17477'] },
      default: ['127.0.0.1:17477'],
      examples: [['127.0.0.1:17477']],
    })`
      Where status page, health and metrics are served: HOST:PORT. Read-only; port 0 takes any free one, an empty list serves none.`,
  }),
  control: section('The listener that changes state.', {
    listen: key({
      type: 'array',
      items: { type: 'string', examples: ['unix:/run/killswitchd/control.sock'] },
      default: [],
      examples: [['unix:/run/killswitchd/control.sock']],
    })`
      Where beats and commands are taken: unix:/PATH, or HOST:PORT of this host; of any other address only with tokenFile. An empty list takes none.`,
    access: key({ enum: ['owner', 'group'], default: 'owner', examples: ['group'] })`
      Who may use the unix: socket beside root: owner is the daemon's user alone (mode 0600), group also every member of the daemon's group (mode 0660). Whoever may use it may send every command.`,
    tokenFile: key({ type: 'string', minLength: 1, examples: ['/run/secrets/control-token'] })`
      Name of a file that holds a token of at least 16 characters. At HOST:PORT everybody must then show it as a bearer token; the socket is guarded by its mode alone.`,
  }),
  notify: section(
    'Who is told that orders were cancelled, a bot died or an outage began, without a monitoring system.',
    {
      urlFile: key({ type: 'string', minLength: 1, examples: ['/run/secrets/notify-url'] })`
        Name of a file that holds the address to which messages are posted. The address is a secret: whoever has it can write in your name.`,
      format: key({ enum: ['json', 'slack', 'telegram'], default: 'json', examples: ['telegram'] })`
        json: event, time, markets and text. slack: what an incoming webhook takes. telegram: what sendMessage takes; the address has ?chat_id=.`,
      name: key({
        type: 'string',
        default: 'killswitchd',
        minLength: 1,
        maxLength: 64,
        examples: ['main account'],
      })`
        What this daemon is called in its messages, where several write to one place.`,
      pingUrlFile: key({ type: 'string', minLength: 1, examples: ['/run/secrets/ping-url'] })`
        Name of a file that holds the address of a dead man's switch, such as a check of healthchecks.io. It is asked for while all is well, and not otherwise.`,
      pingEverySeconds: key({ type: 'number', default: 60, minimum: 5, maximum: 3600, examples: [300] })`
        Seconds between two of those pings.`,
    },
  ),
  reload: section('How the daemon learns that its configuration has changed.', {
    pollSeconds: key({ type: 'integer', default: 0, minimum: 0, maximum: 3600, examples: [30] })`
      Seconds between two looks at whether the configuration has changed, as a ConfigMap does; 0 looks never. SIGHUP and the command reload work either way.`,
    allowRemoval: key({ type: 'boolean', default: false, examples: [true] })`
      True where a reload may take out more than half of the markets at once, if that is more than one. Otherwise such a file is refused: it is rather cut off than meant, and the timers would be deleted.`,
  }),
  log: section('The log on standard output.', {
    level: key({ enum: ['trace', ...LOG_LEVELS], default: 'info', examples: ['debug'] })`
      The least important lines that are written.`,
    format: key({ enum: ['auto', 'json', 'journal', 'text'], default: 'auto', examples: ['text'] })`
      auto: text on a terminal, else json. json: one object per line. journal: plain words with the code of the event, and the priority that the systemd journal reads. text: plain words.`,
  }),
});

type Keys = Omit<(typeof FileSchema)['properties'], '$schema'>;
/** A key has the value of the first source that gives one, or its default, or null. */
type Value<Node> = Node extends { default: unknown } ? XStatic<Node> : XStatic<Node> | null;

/** The values of all sources together, in the shape of the file. */
export type Values = {
  readonly [Name in keyof Keys]: Keys[Name] extends { properties: infer Inner }
    ? { readonly [Key in keyof Inner]: Value<Inner[Key]> }
    : Value<Keys[Name]>;
};
