import { botTurns, DESIRED, EXPIRY, MAIN, NEW, OLD, OTHER, type QuietPlay } from './alert-stage.ts';
import { beginning, daemon, ending, flat, STEP_SECONDS, TROUBLE, together, turns } from './alert-world.ts';

/** The market is found in the moment before its first confirmation. */
const arming = { [EXPIRY]: (scrape: number) => (scrape < TROUBLE + 7 ? 0 : scrape * STEP_SECONDS + 55) };

/** A daemon of its own whose timer always has so much slack left at a scrape, in seconds. */
const ofTimeout = (seconds: number, slack: number) =>
  daemon(
    { instance: `t${seconds}:17477`, account: `t${seconds}` },
    {
      killswitch_timer_timeout_seconds: flat(seconds),
      [EXPIRY]: (scrape) => scrape * STEP_SECONDS + slack,
    },
  );

/** Plays in which nothing may be heard from beginning to end. */
export const QUIET_PLAYS: readonly QuietPlay[] = [
  { name: 'all is well', world: together(daemon(MAIN), daemon(OTHER)), minutes: 90 },
  {
    name: 'a pod is replaced by one with another name and address, half a minute later',
    world: together(ending(daemon(OLD), TROUBLE, 4), beginning(daemon(NEW, arming), TROUBLE + 6)),
    minutes: 80,
  },
  {
    name: 'two pods overlap while one takes over from the other',
    world: together(ending(daemon(OLD), TROUBLE, 4), beginning(daemon(NEW), TROUBLE - 24)),
    minutes: 80,
  },
  {
    name: 'a service is restarted in its place, and its counters begin anew',
    world: together(
      ending(daemon(MAIN, { killswitch_overdue_total: flat(4) }), TROUBLE, 2),
      beginning(
        daemon(MAIN, { process_start_time_seconds: flat(900), killswitch_overdue_total: flat(0) }),
        TROUBLE + 2,
      ),
    ),
    minutes: 80,
  },
  {
    name: 'a reload takes a market out',
    world: together(
      daemon(MAIN, {}),
      ending(
        new Map([...daemon({ ...MAIN, markets: ['ETH_USDT'] })].filter(([name]) => name.includes('market='))),
        TROUBLE,
      ),
    ),
    minutes: 80,
  },
  {
    name: 'timers of 5, 10 and 30 s are renewed as they should be',
    world: together(...[5, 10, 30].map((seconds) => ofTimeout(seconds, seconds * 0.85))),
    minutes: 30,
  },
  {
    name: 'a slowed-down daemon renews every third of the timeout',
    world: together(...[30, 60].map((seconds) => ofTimeout(seconds, (seconds * 2) / 3 - 1))),
    minutes: 30,
  },
  {
    name: 'a reload makes the timeout longer, and a bot that was silent for long comes back',
    world: together(
      daemon(MAIN, {
        killswitch_timer_timeout_seconds: turns(10, 60),
        [EXPIRY]: (scrape) => scrape * STEP_SECONDS + (scrape > TROUBLE ? 55 : 9),
      }),
      daemon(OTHER, {
        [DESIRED]: turns(0, 1),
        [EXPIRY]: (scrape) => (scrape > TROUBLE ? scrape * STEP_SECONDS + 55 : 100),
      }),
    ),
    minutes: 30,
  },
  {
    name: 'a market is paused for twenty minutes',
    world: daemon(MAIN, {
      [DESIRED]: (scrape) => (scrape < TROUBLE || scrape > TROUBLE + 240 ? 1 : 0),
      [EXPIRY]: (scrape) => (scrape < TROUBLE || scrape > TROUBLE + 240 ? scrape * STEP_SECONDS + 55 : 0),
      'killswitch_market_held{reason="paused",market="BTC_USDT"}': (scrape) =>
        scrape < TROUBLE || scrape > TROUBLE + 240 ? '_' : 1,
    }),
    minutes: 40,
  },
  {
    name: 'a bot says goodbye',
    world: daemon(MAIN, { ...botTurns('goodbye'), [DESIRED]: turns(1, 0), [EXPIRY]: turns(1e6, 0) }),
    minutes: 80,
  },
  {
    name: 'a pod takes over with the market paused',
    world: together(
      ending(daemon(OLD), TROUBLE),
      beginning(daemon(NEW, { [DESIRED]: flat(0), [EXPIRY]: flat(0) }), TROUBLE + 2),
    ),
    minutes: 50,
  },
  {
    name: 'single failures, a short outage and a scrape that failed',
    world: daemon(MAIN, {
      up: (scrape) => (scrape % 100 === 99 ? 0 : 1),
      killswitch_outage_active: (scrape) => (scrape % 100 < 4 ? 1 : 0),
      'killswitch_request_failures_total{purpose="renew",reason="timeout"}': (scrape) =>
        Math.floor(scrape / 20),
    }),
    minutes: 80,
  },
];
