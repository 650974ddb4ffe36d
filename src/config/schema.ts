import type { XStatic } from 'typebox/schema';
import { ORDER_TYPES } from '../core/events.ts';

/** What the checks and messages read of a JSON Schema node. */
export interface SchemaNode {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly description?: string;
}

/** How the daemon may know that the bot lives. */
export const LIVENESS_MODES = ['beat', 'file', 'http', 'process', 'none'] as const;
/** What a market may be called: base and quote currency, upper case, joined by an underscore. */
export const MARKET_PATTERN = '^[A-Z0-9]+_[A-Z0-9]+$';
/** What a bot may be called: it becomes the value of a metric's label, and part of a path, where dots alone lead elsewhere. */
export const BOT_PATTERN = '^(?!\\.+$)[A-Za-z0-9_.-]{1,64}$';
/** The bot of a market that names none. */
export const DEFAULT_BOT = 'default';
/** More daemons than this share no list of markets. */
export const MOST_SHARDS = 1000;

/** A section of the file: an object that knows these keys and no others. */
function section<const Properties extends object>(description: string, properties: Properties) {
  return { type: 'object', properties, additionalProperties: false, description } as const;
}

const renewEverySeconds = {
  type: 'number',
  description:
    'Seconds between two renewals. Leave it out: the cadence then follows from the timeout and the budget. At least three renewals must fit into the timeout.',
  minimum: 1,
  maximum: 200,
  examples: [5],
} as const;

const orderTypes = {
  type: 'array',
  items: { enum: ORDER_TYPES },
  description:
    'Order types that the timer cancels. Leave it out for all of them; that includes orders placed by hand.',
  minItems: 1,
  uniqueItems: true,
  examples: [['spot', 'margin']],
} as const;

const marketName = {
  type: 'string',
  description: 'Name of the market at the exchange: BASE_QUOTE.',
  pattern: MARKET_PATTERN,
  examples: ['BTC_USDT'],
} as const;

const exchange = section('The exchange. Key and secret never stand in this file.', {
  baseUrls: {
    type: 'array',
    items: { type: 'string', pattern: '^[Hh][Tt][Tt][Pp][Ss]?://', examples: ['https://exchange.example'] },
    description:
      'Base addresses of the exchange: https://HOST[:PORT], or http:// to this host only (see allowPlainHttp). The first is used; the others only with sameAccount.',
    minItems: 1,
    examples: [['https://exchange.example']],
  },
  allowPlainHttp: {
    type: 'boolean',
    description:
      'True where a base address may be http:// to another host: a test exchange in a private network, such as the simulated one. Said at every start, since everybody on the way can read the API key.',
    default: false,
    examples: [true],
  },
  sameAccount: {
    type: 'boolean',
    description:
      'True only where all base addresses serve the same account and the same timers: renewals may then go to any of them.',
    default: false,
    examples: [true],
  },
  nonce: {
    enum: ['increasing', 'window'],
    description:
      'increasing: each request waits for the one before it, as nonces must arrive in order. window: many at a time; the exchange accepts nonces within a few seconds of its clock.',
    default: 'increasing',
    examples: ['window'],
  },
  budgetShare: {
    type: 'number',
    description:
      'Share of the documented limit of 10000 kill-switch requests in 10 seconds that this daemon may use. The rest is for whoever else uses the same key or address.',
    default: 0.5,
    minimum: 0.01,
    maximum: 1,
    examples: [0.8],
  },
  connections: {
    type: 'integer',
    description: 'Most requests in flight at a time with nonce: window.',
    default: 64,
    minimum: 1,
    maximum: 1024,
    examples: [16],
  },
  cancellationDelaySeconds: {
    type: 'number',
    description:
      'How long the exchange may take to cancel orders after a timer ran out. Added to every promise about the latest moment.',
    default: 0,
    minimum: 0,
    maximum: 60,
    examples: [1],
  },
  requestLifetimeSeconds: {
    type: 'number',
    description: 'How long a request that was written can still be on its way and then be carried out.',
    default: 10,
    minimum: 0,
    maximum: 60,
    examples: [5],
  },
});

const defaults = section('What a market gets that does not say otherwise.', {
  timeoutSeconds: {
    type: 'integer',
    description: 'Timeout of the timers of markets that give none, whole seconds.',
    default: 60,
    minimum: 5,
    maximum: 600,
    examples: [60],
  },
  renewEverySeconds: renewEverySeconds,
  types: orderTypes,
});

const markets = {
  type: 'array',
  items: {
    anyOf: [
      marketName,
      {
        type: 'object',
        required: ['market'],
        properties: {
          market: marketName,
          timeoutSeconds: {
            type: 'integer',
            description: 'Timeout of this market, whole seconds; else defaults.timeoutSeconds.',
            minimum: 5,
            maximum: 600,
            examples: [60],
          },
          types: orderTypes,
          renewEverySeconds: renewEverySeconds,
          bot: {
            type: 'string',
            description: 'Name of the bot that trades this market, where several share the daemon.',
            default: DEFAULT_BOT,
            pattern: BOT_PATTERN,
            examples: ['maker'],
          },
        },
        additionalProperties: false,
        description: 'A market with settings of its own.',
      },
    ],
  },
  description: 'The markets whose timers are kept armed.',
  minItems: 1,
  examples: [['BTC_USDT', { market: 'ETH_USDT', timeoutSeconds: 30 }]],
} as const;

const shard = section('This daemon as one of several that share the markets.', {
  index: {
    type: 'integer',
    description:
      'Which shard this daemon is, counted from 0. One that is not below the count guards nothing and waits for a larger count.',
    default: 0,
    minimum: 0,
    maximum: 999,
    examples: [2],
  },
  count: {
    type: 'integer',
    description:
      'How many daemons share the markets of this configuration. Each market belongs to one of them; a change of the count moves only the markets that it must.',
    default: 1,
    minimum: 1,
    maximum: 1000,
    examples: [4],
  },
  handoverSeconds: {
    type: 'number',
    description:
      'How long a market that goes to another shard is still renewed here as well: longer than the other daemons take to learn of the new count.',
    default: 120,
    minimum: 0,
    maximum: 3600,
    examples: [300],
  },
  budget: {
    enum: ['shared', 'own'],
    description:
      'shared: the shards divide exchange.budgetShare among them. own: each has an address of its own, and the whole of it. Each has a key of its own either way.',
    default: 'shared',
    examples: ['own'],
  },
});

const liveness = section('Evidence that the bot lives.', {
  mode: {
    enum: LIVENESS_MODES,
    description:
      'How the daemon knows that the bot lives. There is no default. beat: the bot says so at control.listen. file: the bot touches liveness.file. http: liveness.url answers with 2xx. process: the bot runs as a child of killswitchd exec. none: it does not know; timers are renewed for as long as the daemon runs.',
    examples: ['beat'],
  },
  file: {
    type: 'string',
    description:
      'For mode file: the file that the bot touches. {bot} stands for the name of the bot, and must be there where several bots share the daemon.',
    minLength: 1,
    examples: ['/run/bots/{bot}.alive'],
  },
  url: {
    type: 'string',
    description:
      'For mode http: the address of the bot that is asked, http or https, on this host or in a private network. {bot} stands for the name of the bot, as in liveness.file.',
    minLength: 1,
    examples: ['http://127.0.0.1:8080/{bot}/alive'],
  },
  probeEverySeconds: {
    type: 'number',
    description:
      'For modes file, http and process: seconds between two looks at the bot, less than a third of ttlSeconds. Left out, 5 for http and 1 for the others, but no more than a quarter of ttlSeconds.',
    minimum: 0.25,
    maximum: 200,
    examples: [2],
  },
  ttlSeconds: {
    type: 'number',
    description: 'How long one sign of life counts.',
    default: 15,
    minimum: 1,
    maximum: 600,
    examples: [15],
  },
  startupGraceSeconds: {
    type: 'number',
    description: 'How long the bot may take to give its first sign of life after the daemon started.',
    default: 60,
    minimum: 0,
    maximum: 3600,
    examples: [120],
  },
  onStale: {
    enum: ['expire', 'trip'],
    description:
      'When the bot is silent: expire stops renewing and lets the timers run out; trip sets them to 5 seconds.',
    default: 'expire',
    examples: ['trip'],
  },
});

const shutdown = section('What happens on SIGTERM and SIGINT.', {
  policy: {
    enum: ['delete', 'keep', 'handoff'],
    description:
      'What a deliberate stop does with the timers: delete removes them, keep lets them run out, handoff renews them once more in full for the next process.',
    default: 'delete',
    examples: ['handoff'],
  },
  budgetSeconds: {
    type: 'number',
    description: 'How long a stop may take. Stay below what the service manager allows.',
    default: 8,
    minimum: 1,
    maximum: 300,
    examples: [20],
  },
});

const ping = section('The watch over the base addresses. A ping never decides about a renewal.', {
  everySeconds: {
    type: 'number',
    description: 'Seconds between two pings of each base address.',
    default: 5,
    minimum: 1,
    maximum: 60,
    examples: [10],
  },
});

const web = section('The read-only listener.', {
  listen: {
    type: 'array',
    items: { type: 'string', examples: ['127.0.0.1:17477'] },
    description:
      'Where status page, health and metrics are served: HOST:PORT. Read-only; port 0 takes any free one, an empty list serves none.',
    default: ['127.0.0.1:17477'],
    examples: [['127.0.0.1:17477']],
  },
});

const control = section('The listener that changes state.', {
  listen: {
    type: 'array',
    items: { type: 'string', examples: ['unix:/run/killswitchd/control.sock'] },
    description:
      'Where beats and commands are taken: unix:/PATH, or HOST:PORT of this host; of any other address only with tokenFile. An empty list takes none.',
    default: [],
    examples: [['unix:/run/killswitchd/control.sock']],
  },
  access: {
    enum: ['owner', 'group'],
    description:
      "Who may use the unix: socket beside root: owner is the daemon's user alone (mode 0600), group also every member of the daemon's group (mode 0660). Whoever may use it may send every command.",
    default: 'owner',
    examples: ['group'],
  },
  tokenFile: {
    type: 'string',
    description:
      'Name of a file that holds a token of at least 16 characters. At HOST:PORT everybody must then show it as a bearer token; the socket is guarded by its mode alone.',
    minLength: 1,
    examples: ['/run/secrets/control-token'],
  },
});

const notify = section(
  'Who is told that orders were cancelled, a bot died or an outage began, without a monitoring system.',
  {
    urlFile: {
      type: 'string',
      description:
        'Name of a file that holds the address to which messages are posted. The address is a secret: whoever has it can write in your name.',
      minLength: 1,
      examples: ['/run/secrets/notify-url'],
    },
    format: {
      enum: ['json', 'slack', 'telegram'],
      description:
        'json: event, time, markets and text. slack: what an incoming webhook takes. telegram: what sendMessage takes; the address has ?chat_id=.',
      default: 'json',
      examples: ['telegram'],
    },
    name: {
      type: 'string',
      description: 'What this daemon is called in its messages, where several write to one place.',
      default: 'killswitchd',
      minLength: 1,
      maxLength: 64,
      examples: ['main account'],
    },
    pingUrlFile: {
      type: 'string',
      description:
        "Name of a file that holds the address of a dead man's switch, such as a check of healthchecks.io. It is asked for while all is well, and not otherwise.",
      minLength: 1,
      examples: ['/run/secrets/ping-url'],
    },
    pingEverySeconds: {
      type: 'number',
      description: 'Seconds between two of those pings.',
      default: 60,
      minimum: 5,
      maximum: 3600,
      examples: [300],
    },
  },
);

const reload = section('How the daemon learns that its configuration has changed.', {
  pollSeconds: {
    type: 'integer',
    description:
      'Seconds between two looks at whether the configuration has changed, as a ConfigMap does; 0 looks never. SIGHUP and the command reload work either way.',
    default: 0,
    minimum: 0,
    maximum: 3600,
    examples: [30],
  },
  allowRemoval: {
    type: 'boolean',
    description:
      'True where a reload may take out more than half of the markets at once. Otherwise such a file is refused: it is rather cut off than meant, and the timers would be deleted.',
    default: false,
    examples: [true],
  },
});

const log = section('The log on standard output.', {
  level: {
    enum: ['trace', 'debug', 'info', 'warn', 'error', 'fatal'],
    description: 'The least important lines that are written.',
    default: 'info',
    examples: ['debug'],
  },
  format: {
    enum: ['auto', 'json', 'journal', 'text'],
    description:
      'auto: text on a terminal, else json. json: one object per line. journal: plain words with the code of the event, and the priority that the systemd journal reads. text: plain words.',
    default: 'auto',
    examples: ['text'],
  },
});

/** The shape of the configuration file: what is checked, what `--print` shows and what is published. */
export const FileSchema = {
  type: 'object',
  properties: {
    $schema: {
      type: 'string',
      description: 'For editors; the daemon does not read it.',
      examples: ['./killswitchd.schema.json'],
    },
    exchange,
    defaults,
    markets,
    shard,
    liveness,
    onLapse: {
      enum: ['rearm', 'hold'],
      description:
        'After a timer ran out against all efforts: rearm makes a new one at once, hold leaves the market alone until an operator arms it.',
      default: 'rearm',
      examples: ['hold'],
    },
    shutdown,
    ping,
    web,
    control,
    notify,
    reload,
    log,
  },
  additionalProperties: false,
  description: 'Configuration of killswitchd.',
} as const;

/** A configuration file's values; every key may be missing. */
export type FileValues = XStatic<typeof FileSchema>;

/** The JSON Schema (draft-07, which editors read) of the configuration file, as `config/killswitchd.schema.json`. */
export function publishedSchema(): object {
  return { $schema: 'http://json-schema.org/draft-07/schema#', title: 'killswitchd', ...FileSchema };
}
