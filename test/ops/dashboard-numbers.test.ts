import { expect, test } from 'vitest';
import { DASHBOARDS, expressionOf, filledIn } from '../deploy/dashboards.ts';
import {
  after,
  beginning,
  botTurns,
  DESIRED,
  daemon,
  EXPIRY,
  ending,
  judge,
  MAIN,
  NEW,
  OLD,
  OTHER,
  onlyMarkets,
  TROUBLE,
  together,
  turns,
  type World,
} from './alert-world.ts';

const [BOT, FLEET] = DASHBOARDS;

/** "All", as hard as it gets: other programs in the same Prometheus, some of them in the daemons' own job. */
const ALL = new Map(['job', 'instance', 'market', 'bot'].map((name) => [name, '.+'])).set('account', '.*');
const FOREIGN: World = new Map([
  ['up{job="node",instance="10.0.0.7:9100"}', () => 0],
  ['up{job="killswitchd",instance="10.0.0.8:9100"}', () => 0],
  ['process_resident_memory_bytes{job="node",instance="10.0.0.7:9100"}', () => 1e9],
]);

const PROTECTED = 'Is every market protected?';
const LEFT = 'Orders are cancelled in';
const NEXT = 'Next orders are cancelled in';
const SILENT = 'Daemons that do not answer';
const UNARMED = 'Markets not armed';
const neverArmed = { [`${EXPIRY}{market="BTC_USDT"}`]: 0 };
const rolledOut = together(ending(daemon(OLD), TROUBLE), beginning(daemon(NEW), TROUBLE + 2));
type Numbers = Readonly<Record<string, number | null>>;

test.each<[name: string, world: World, bot: Numbers, fleet: Numbers, moments?: readonly number[]]>([
  [
    'counts no target of another program, and no process',
    together(daemon(MAIN), daemon(OTHER)),
    { [PROTECTED]: 1, [LEFT]: 55, 'Least slack': 55 / 60, Memory: null },
    { [SILENT]: 0, [UNARMED]: 0, [NEXT]: 55 },
  ],
  [
    'counts a daemon that is dead',
    together(ending(daemon(MAIN), TROUBLE, 1e6), daemon(OTHER)),
    { [PROTECTED]: -1, [LEFT]: -50 },
    { [SILENT]: 1, [UNARMED]: 1 },
  ],
  [
    'shows the least slack of the others where a market was never armed',
    daemon({ ...MAIN, markets: ['ETH_USDT', 'BTC_USDT'] }, neverArmed),
    { [LEFT]: 55 },
    { [NEXT]: 55, [UNARMED]: 1 },
  ],
  [
    'shows no slack where the only market was never armed',
    daemon(MAIN, neverArmed),
    { [LEFT]: null },
    { [NEXT]: null, [UNARMED]: 1 },
  ],
  [
    'shows the timers of the new daemon after a rollout',
    rolledOut,
    { [PROTECTED]: 1, [LEFT]: 55 },
    { [NEXT]: 55, [UNARMED]: 0 },
    [60, 100, 500],
  ],
  [
    'forgets a market that a reload took out',
    together(daemon(MAIN), ending(onlyMarkets(daemon({ ...MAIN, markets: ['ETH_USDT'] })), TROUBLE)),
    { [LEFT]: 55 },
    { [UNARMED]: 0 },
  ],
  [
    'counts down what is left of the timers of a dead bot',
    daemon(MAIN, { ...botTurns('stale'), [DESIRED]: turns(1, 0), [EXPIRY]: 400, killswitch_ready: 0 }),
    { [PROTECTED]: 0, [LEFT]: 50, 'Least slack': null },
    { [NEXT]: 50 },
    [50],
  ],
  [
    'says so where the timers of a dead bot have fired',
    daemon(MAIN, {
      ...botTurns('failed'),
      [DESIRED]: turns(1, 0),
      [EXPIRY]: turns(1e6, 0),
      killswitch_ready: 0,
    }),
    { [PROTECTED]: 0, [LEFT]: null },
    { [NEXT]: null },
  ],
  [
    'says that nothing is guarded after a goodbye',
    daemon(MAIN, { ...botTurns('goodbye'), [DESIRED]: turns(1, 0), [EXPIRY]: turns(1e6, 0) }),
    { [PROTECTED]: 2, [LEFT]: null },
    { [NEXT]: null },
  ],
])('a dashboard with everything chosen %s', (_name, world, bot, fleet, moments = [100]) => {
  const numbers = [
    ...Object.entries(bot).map(([title, value]) => [BOT, title, value] as const),
    ...Object.entries(fleet).map(([title, value]) => [FLEET, title, value] as const),
  ];
  const expectations = moments.flatMap((seconds) =>
    numbers.map(([dashboard, title, value]) => ({
      at: after(seconds),
      query: filledIn(expressionOf(dashboard, title), ALL, '60s'),
      samples: value === null ? [] : [{ labels: '{}', value }],
    })),
  );
  expect(judge(together(world, FOREIGN), expectations)).toBe('');
});

test('a dashboard has no daemon that was replaced among the worst', () => {
  const query = `count(${filledIn(expressionOf(FLEET, 'Daemons, worst first'), ALL)} < 0) or vector(0)`;
  expect(judge(rolledOut, [{ at: after(100), query, samples: [{ labels: '{}', value: 0 }] }])).toBe('');
});
