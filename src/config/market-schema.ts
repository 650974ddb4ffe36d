import { ORDER_TYPES } from '../core/outcome.ts';
import { Type } from './json-schema.ts';

/** What a market may be called: base and quote currency, upper case, joined by an underscore. */
export const MARKET_PATTERN = '^[A-Z0-9]+_[A-Z0-9]+$';
/** What a bot may be called: it becomes the value of a metric's label, and part of a path, where dots alone lead elsewhere. */
export const BOT_PATTERN = '^(?!\\.+$)[A-Za-z0-9_.-]{1,64}$';
/** The bot of a market that names none. */
export const DEFAULT_BOT = 'default';

const strict = { additionalProperties: false };

const timeoutSeconds = (description: string, defaults: { default?: number } = {}) =>
  Type.Integer({ description, ...defaults, minimum: 5, maximum: 600, examples: [60] });

const renewEverySeconds = () =>
  Type.Number({
    description:
      'Seconds between two renewals. Leave it out: the cadence then follows from the timeout and the budget. At least three renewals must fit into the timeout.',
    minimum: 1,
    maximum: 200,
    examples: [5],
  });

const orderTypes = () =>
  Type.Array(Type.Enum([...ORDER_TYPES]), {
    description:
      'Order types that the timer cancels. Leave it out for all of them; that includes orders placed by hand.',
    minItems: 1,
    uniqueItems: true,
    examples: [['spot', 'margin']],
  });

const marketName = () =>
  Type.String({
    description: 'Name of the market at the exchange: BASE_QUOTE.',
    pattern: MARKET_PATTERN,
    examples: ['BTC_USDT'],
  });

/** What a market gets that does not say otherwise. */
export const DefaultsSchema = Type.Object(
  {
    timeoutSeconds: Type.Optional(
      timeoutSeconds('Timeout of the timers of markets that give none, whole seconds.', { default: 60 }),
    ),
    renewEverySeconds: Type.Optional(renewEverySeconds()),
    types: Type.Optional(orderTypes()),
  },
  { ...strict, description: 'What a market gets that does not say otherwise.' },
);

/** The markets, each by its name alone or with settings of its own. */
export const MarketsSchema = Type.Array(
  Type.Union([
    marketName(),
    Type.Object(
      {
        market: marketName(),
        timeoutSeconds: Type.Optional(
          timeoutSeconds('Timeout of this market, whole seconds; else defaults.timeoutSeconds.'),
        ),
        types: Type.Optional(orderTypes()),
        renewEverySeconds: Type.Optional(renewEverySeconds()),
        bot: Type.Optional(
          Type.String({
            description: 'Name of the bot that trades this market, where several share the daemon.',
            default: DEFAULT_BOT,
            pattern: BOT_PATTERN,
            examples: ['maker'],
          }),
        ),
      },
      { ...strict, description: 'A market with settings of its own.' },
    ),
  ]),
  {
    description: 'The markets whose timers are kept armed.',
    minItems: 1,
    examples: [['BTC_USDT', { market: 'ETH_USDT', timeoutSeconds: 30 }]],
  },
);
