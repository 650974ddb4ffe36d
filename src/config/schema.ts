import type { Static } from 'typebox';
import { Type } from './json-schema.ts';
import { LivenessSchema } from './liveness-schema.ts';
import { DefaultsSchema, MarketsSchema } from './market-schema.ts';
import { ShardSchema } from './shard.ts';

const strict = { additionalProperties: false };

const addressList = (description: string, defaults: string[], example: string) =>
  Type.Array(Type.String({ examples: [example] }), {
    description,
    default: defaults,
    examples: [[example]],
  });

const exchange = Type.Object(
  {
    baseUrls: Type.Optional(
      Type.Array(
        Type.String({ pattern: '^[Hh][Tt][Tt][Pp][Ss]?://', examples: ['https://exchange.example'] }),
        {
          description:
            'Base addresses of the exchange: https://HOST[:PORT], or http:// to this host only. The first is used; the others only with sameAccount.',
          minItems: 1,
          examples: [['https://exchange.example']],
        },
      ),
    ),
    sameAccount: Type.Optional(
      Type.Boolean({
        description:
          'True only where all base addresses serve the same account and the same timers: renewals may then go to any of them.',
        default: false,
        examples: [true],
      }),
    ),
    nonce: Type.Optional(
      Type.Enum(['increasing', 'window'], {
        description:
          'increasing: each request waits for the one before it, as nonces must arrive in order. window: many at a time; the exchange accepts nonces within a few seconds of its clock.',
        default: 'increasing',
        examples: ['window'],
      }),
    ),
    budgetShare: Type.Optional(
      Type.Number({
        description:
          'Share of the documented limit of 10000 kill-switch requests in 10 seconds that this daemon may use. The rest is for whoever else uses the same key or address.',
        default: 0.5,
        minimum: 0.01,
        maximum: 1,
        examples: [0.8],
      }),
    ),
    connections: Type.Optional(
      Type.Integer({
        description: 'Most requests in flight at a time with nonce: window.',
        default: 64,
        minimum: 1,
        maximum: 1024,
        examples: [16],
      }),
    ),
    cancellationDelaySeconds: Type.Optional(
      Type.Number({
        description:
          'How long the exchange may take to cancel orders after a timer ran out. Added to every promise about the latest moment.',
        default: 0,
        minimum: 0,
        maximum: 60,
        examples: [1],
      }),
    ),
    requestLifetimeSeconds: Type.Optional(
      Type.Number({
        description: 'How long a request that was written can still be on its way and then be carried out.',
        default: 10,
        minimum: 0,
        maximum: 60,
        examples: [5],
      }),
    ),
  },
  { ...strict, description: 'The exchange. Key and secret never stand in this file.' },
);

const shutdown = Type.Object(
  {
    policy: Type.Optional(
      Type.Enum(['delete', 'keep', 'handoff'], {
        description:
          'What a deliberate stop does with the timers: delete removes them, keep lets them run out, handoff renews them once more in full for the next process.',
        default: 'delete',
        examples: ['handoff'],
      }),
    ),
    budgetSeconds: Type.Optional(
      Type.Number({
        description: 'How long a stop may take. Stay below what the service manager allows.',
        default: 8,
        minimum: 1,
        maximum: 300,
        examples: [20],
      }),
    ),
  },
  { ...strict, description: 'What happens on SIGTERM and SIGINT.' },
);

const ping = Type.Object(
  {
    everySeconds: Type.Optional(
      Type.Number({
        description: 'Seconds between two pings of each base address.',
        default: 5,
        minimum: 1,
        maximum: 60,
        examples: [10],
      }),
    ),
  },
  { ...strict, description: 'The watch over the base addresses. A ping never decides about a renewal.' },
);

const reload = Type.Object(
  {
    pollSeconds: Type.Optional(
      Type.Integer({
        description:
          'Seconds between two looks at whether the configuration has changed, as a ConfigMap does; 0 looks never. SIGHUP and the command reload work either way.',
        default: 0,
        minimum: 0,
        maximum: 3600,
        examples: [30],
      }),
    ),
    allowRemoval: Type.Optional(
      Type.Boolean({
        description:
          'True where a reload may take out more than half of the markets at once. Otherwise such a file is refused: it is rather cut off than meant, and the timers would be deleted.',
        default: false,
        examples: [true],
      }),
    ),
  },
  { ...strict, description: 'How the daemon learns that its configuration has changed.' },
);

const log = Type.Object(
  {
    level: Type.Optional(
      Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], {
        description: 'The least important lines that are written.',
        default: 'info',
        examples: ['debug'],
      }),
    ),
    format: Type.Optional(
      Type.Enum(['json', 'journal', 'text'], {
        description:
          'json: one object per line. journal: the same with the priority that the systemd journal reads. text: plain words for a terminal.',
        default: 'json',
        examples: ['text'],
      }),
    ),
  },
  { ...strict, description: 'The log on standard output.' },
);

/** The shape of the configuration file: what is checked, what `--print` shows and what is published. */
export const FileSchema = Type.Object(
  {
    $schema: Type.Optional(
      Type.String({
        description: 'For editors; the daemon does not read it.',
        examples: ['./killswitchd.schema.json'],
      }),
    ),
    exchange: Type.Optional(exchange),
    defaults: Type.Optional(DefaultsSchema),
    markets: Type.Optional(MarketsSchema),
    shard: Type.Optional(ShardSchema),
    liveness: Type.Optional(LivenessSchema),
    onLapse: Type.Optional(
      Type.Enum(['rearm', 'hold'], {
        description:
          'After a timer ran out against all efforts: rearm makes a new one at once, hold leaves the market alone until an operator arms it.',
        default: 'rearm',
        examples: ['hold'],
      }),
    ),
    shutdown: Type.Optional(shutdown),
    ping: Type.Optional(ping),
    web: Type.Optional(
      Type.Object(
        {
          listen: Type.Optional(
            addressList(
              'Where status page, health and metrics are served: HOST:PORT. Read-only; port 0 takes any free one, an empty list serves none.',
              ['127.0.0.1:17477'],
              '127.0.0.1:17477',
            ),
          ),
        },
        { ...strict, description: 'The read-only listener.' },
      ),
    ),
    control: Type.Optional(
      Type.Object(
        {
          listen: Type.Optional(
            addressList(
              'Where beats and commands are taken: unix:/PATH, or HOST:PORT of this host only. An empty list takes none.',
              [],
              'unix:/run/killswitchd/control.sock',
            ),
          ),
          access: Type.Optional(
            Type.Enum(['owner', 'group'], {
              description:
                "Who may use the unix: socket beside root: owner is the daemon's user alone (mode 0600), group also every member of the daemon's group (mode 0660). Whoever may use it may send every command.",
              default: 'owner',
              examples: ['group'],
            }),
          ),
          tokenFile: Type.Optional(
            Type.String({
              description:
                'Name of a file that holds a token of at least 16 characters. At HOST:PORT everybody must then show it as a bearer token; the socket is guarded by its mode alone.',
              minLength: 1,
              examples: ['/run/secrets/control-token'],
            }),
          ),
        },
        { ...strict, description: 'The listener that changes state.' },
      ),
    ),
    reload: Type.Optional(reload),
    log: Type.Optional(log),
  },
  { ...strict, description: 'Configuration of killswitchd.' },
);

/** A configuration file's values; every key may be missing. */
export type FileValues = Static<typeof FileSchema>;

/** The JSON Schema (draft-07, which editors read) of the configuration file, as `config/killswitchd.schema.json`. */
export function publishedSchema(): object {
  return { $schema: 'http://json-schema.org/draft-07/schema#', title: 'killswitchd', ...FileSchema };
}
