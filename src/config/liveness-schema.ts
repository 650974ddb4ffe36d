import { Type } from './json-schema.ts';

/** How the daemon may know that the bot lives. */
export const LIVENESS_MODES = ['beat', 'file', 'http', 'process', 'none'] as const;

/** How the daemon knows that the bot lives. */
export const LivenessSchema = Type.Object(
  {
    mode: Type.Optional(
      Type.Enum([...LIVENESS_MODES], {
        description:
          'How the daemon knows that the bot lives. There is no default. beat: the bot says so at control.listen. file: the bot touches liveness.file. http: liveness.url answers with 2xx. process: the bot runs as a child of killswitchd exec. none: it does not know; timers are renewed for as long as the daemon runs.',
        examples: ['beat'],
      }),
    ),
    file: Type.Optional(
      Type.String({
        description:
          'For mode file: the file that the bot touches. {bot} stands for the name of the bot, and must be there where several bots share the daemon.',
        minLength: 1,
        examples: ['/run/bots/{bot}.alive'],
      }),
    ),
    url: Type.Optional(
      Type.String({
        description:
          'For mode http: the address of the bot that is asked, http or https, on this host or in a private network. {bot} stands for the name of the bot, as in liveness.file.',
        minLength: 1,
        examples: ['http://127.0.0.1:8080/{bot}/alive'],
      }),
    ),
    probeEverySeconds: Type.Optional(
      Type.Number({
        description:
          'For modes file, http and process: seconds between two looks at the bot, less than a third of ttlSeconds. Left out, 5 for http and 1 for the others, but no more than a quarter of ttlSeconds.',
        minimum: 0.25,
        maximum: 200,
        examples: [2],
      }),
    ),
    ttlSeconds: Type.Optional(
      Type.Number({
        description: 'How long one sign of life counts.',
        default: 15,
        minimum: 1,
        maximum: 600,
        examples: [15],
      }),
    ),
    startupGraceSeconds: Type.Optional(
      Type.Number({
        description: 'How long the bot may take to give its first sign of life after the daemon started.',
        default: 60,
        minimum: 0,
        maximum: 3600,
        examples: [120],
      }),
    ),
    onStale: Type.Optional(
      Type.Enum(['expire', 'trip'], {
        description:
          'When the bot is silent: expire stops renewing and lets the timers run out; trip sets them to 5 seconds.',
        default: 'expire',
        examples: ['trip'],
      }),
    ),
  },
  { additionalProperties: false, description: 'Evidence that the bot lives.' },
);
