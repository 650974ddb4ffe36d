import {
  beginning,
  counts,
  countsOnce,
  daemon,
  ending,
  flat,
  renewedUntilTrouble,
  STEP_SECONDS,
  type Target,
  TROUBLE,
  together,
  turns,
  type Values,
  type World,
} from './alert-world.ts';

export interface Play {
  readonly name: string;
  readonly world: World;
  /** The alerts that fire so many seconds after the trouble began, all of them. */
  readonly fires: Readonly<Record<number, readonly string[]>>;
}

export interface QuietPlay {
  readonly name: string;
  readonly world: World;
  readonly minutes: number;
}

const MAIN: Target = { instance: '10.0.0.1:17477', account: 'main' };
const OLD: Target = { ...MAIN, pod: 'bot-7d9f-abcde' };
const NEW: Target = { ...OLD, instance: '10.0.0.2:17477', pod: 'bot-84c5-vwxyz' };
const OTHER: Target = { instance: '10.0.0.9:17477', account: 'other' };
const EXPIRY = 'killswitch_timer_expiry_timestamp_seconds';
const DESIRED = 'killswitch_market_armed_desired';

const scrapesIn = (minutes: number) => (minutes * 60) / STEP_SECONDS;
const after =
  (scrapes: number, before: number, then: number): Values =>
  (scrape) =>
    scrape < scrapes ? before : then;
const bot = (state: string) => ({
  'killswitch_bot_state{bot="maker",state="alive"}': turns(1, 0),
  [`killswitch_bot_state{bot="maker",state="${state}"}`]: turns(0, 1),
});

/** The only thing that is wrong from the trouble on. */
function wrong(
  name: string,
  change: Readonly<Record<string, Values>>,
  fires: Readonly<Record<number, readonly string[]>>,
): Play {
  return { name, world: daemon(MAIN, change), fires };
}

/** One alert, silent until `silent` seconds after the trouble began, firing at `firing`. */
function only(
  alert: string,
  name: string,
  change: Readonly<Record<string, Values>>,
  silent: number,
  firing: number,
) {
  return wrong(name, change, { [silent]: [], [firing]: [alert] });
}

const PAGES: readonly Play[] = [
  wrong(
    'renewals that do not get through',
    { [EXPIRY]: renewedUntilTrouble },
    {
      20: [],
      45: ['KillswitchTimerRunningOut'],
      75: ['KillswitchTimerRunningOut'],
      100: ['KillswitchTimerRunningOut', 'KillswitchUnarmed'],
    },
  ),
  only('KillswitchUnarmed', 'a market that was never armed', { [EXPIRY]: turns(1e6, 0) }, 25, 40),
  only(
    'KillswitchLapsed',
    'a timer that fired',
    { 'killswitch_lapses_total{certainty="certain",market="BTC_USDT"}': countsOnce },
    -5,
    15,
  ),
  only(
    'KillswitchLapsed',
    'a timer that may have fired',
    { 'killswitch_lapses_total{certainty="possible",market="BTC_USDT"}': countsOnce },
    -5,
    15,
  ),
  only(
    'KillswitchHeldAfterLapse',
    'a market that is held after its lapse',
    {
      'killswitch_market_held{reason="lapsed",market="BTC_USDT"}': turns(0, 1),
      [DESIRED]: turns(1, 0),
    },
    -5,
    10,
  ),
  only('KillswitchKeyRefused', 'a key that is refused', { killswitch_authorised: turns(1, 0) }, 10, 20),
  only(
    'KillswitchMarketRejected',
    'a market that is refused',
    { 'killswitch_market_state{state="rejected",market="BTC_USDT"}': turns(0, 1) },
    25,
    35,
  ),
  only('KillswitchBotSilent', 'a bot that is silent', { ...bot('stale'), [DESIRED]: turns(1, 0) }, 10, 20),
  only('KillswitchBotSilent', 'a bot that failed', { ...bot('failed'), [DESIRED]: turns(1, 0) }, 10, 20),
  only(
    'KillswitchTripFailing',
    'a trip that does not get through',
    { killswitch_trip_failures_total: counts(1) },
    5,
    30,
  ),
  only('KillswitchStuck', 'a loop that stands still', { killswitch_live: turns(1, 0) }, 10, 20),
];

const TICKETS: readonly Play[] = [
  only('KillswitchOutage', 'an outage', { killswitch_outage_active: turns(0, 1) }, 25, 60),
  only('KillswitchNearMiss', 'a guarantee that ran out', { killswitch_overdue_total: countsOnce }, -5, 30),
  only(
    'KillswitchRenewalsFailing',
    'every second renewal failing',
    { 'killswitch_renewal_failures_total{reason="timeout",market="BTC_USDT"}': counts(0.5) },
    240,
    900,
  ),
  only(
    'KillswitchSlackLow',
    'renewals that come late',
    { 'killswitch_renewal_slack_ratio_bucket{le="0.5"}': counts(0.5) },
    240,
    900,
  ),
  only(
    'KillswitchLittleRoom',
    'a window of a quarter',
    { killswitch_survivable_outage_seconds: turns(52, 15) },
    580,
    640,
  ),
  only(
    'KillswitchSlowedDown',
    'a cadence that was stretched',
    { killswitch_cadence_factor: turns(1, 1.5) },
    580,
    640,
  ),
  only('KillswitchPingsFailing', 'pings without an answer', { killswitch_api_up: turns(1, 0) }, 280, 340),
  only(
    'KillswitchClockSkewed',
    'a clock that is late',
    { killswitch_clock_skew_seconds: turns(0, 3) },
    280,
    340,
  ),
  only(
    'KillswitchClockSkewed',
    'a clock that is ahead',
    { killswitch_clock_skew_seconds: turns(0, -3) },
    280,
    340,
  ),
  only('KillswitchHostStalls', 'a host that stalls', { killswitch_stalls_total: counts(0.1) }, 10, 600),
  only(
    'KillswitchLimiterBypassed',
    'a limiter that is passed by',
    { killswitch_limiter_bypasses_total: countsOnce },
    -5,
    30,
  ),
  only(
    'KillswitchRestarting',
    'a process that does not stay',
    { process_start_time_seconds: (scrape) => Math.floor(Math.max(TROUBLE, scrape) / 12) },
    30,
    600,
  ),
  only(
    'KillswitchReloadRejected',
    'a configuration that is rejected',
    { killswitch_config_last_reload_successful: turns(1, 0) },
    50,
    90,
  ),
  only(
    'KillswitchOutOfGuard',
    'a market that stays disarmed',
    {
      'killswitch_market_held{reason="disarmed",market="BTC_USDT"}': turns(0, 1),
      [DESIRED]: turns(1, 0),
      [EXPIRY]: turns(1e6, 0),
    },
    3500,
    3660,
  ),
  only(
    'KillswitchDeleteFailing',
    'a delete that does not get through',
    { killswitch_delete_failures_total: counts(0.5) },
    10,
    120,
  ),
  only(
    'KillswitchReplyAltered',
    'another timer than asked for',
    { killswitch_altered_replies_total: countsOnce },
    -5,
    30,
  ),
  only(
    'KillswitchStrangerKnocks',
    'a stranger at the control listener',
    { 'killswitch_control_refused_total{reason="unauthorised"}': counts(1) },
    10,
    60,
  ),
  only(
    'KillswitchLogLost',
    'log lines that nobody takes',
    { killswitch_log_dropped_total: countsOnce },
    -5,
    30,
  ),
  {
    name: 'two accounts whose targets do not say which they are',
    world: together(daemon({ instance: 'a:17477' }), beginning(daemon({ instance: 'b:17477' }), TROUBLE)),
    fires: { 580: [], 640: ['KillswitchGuardedTwice'] },
  },
];

const died = (target: Target, down: number) => ending(daemon(target), TROUBLE, down);

const DEATHS: readonly Play[] = [
  {
    name: 'a daemon that is dead, at an address that does not answer',
    world: died(MAIN, 1e6),
    fires: {
      25: [],
      35: ['KillswitchDown'],
      60: ['KillswitchDown'],
      90: ['KillswitchDown', 'KillswitchUnarmed'],
      3600: ['KillswitchDown', 'KillswitchUnarmed'],
      3800: ['KillswitchDown'],
    },
  },
  {
    name: 'a daemon that is dead beside one that guards the same market on another account',
    world: together(died(MAIN, 1e6), daemon(OTHER)),
    fires: { 90: ['KillswitchDown', 'KillswitchUnarmed'] },
  },
  {
    name: 'a pod that is gone, and no other of its account',
    world: together(died(OLD, 0), daemon(OTHER)),
    fires: {
      25: [],
      90: ['KillswitchUnarmed'],
      130: ['KillswitchGone', 'KillswitchUnarmed'],
      3800: ['KillswitchGone'],
    },
  },
  {
    name: 'a pod that is gone, of several that share the markets of an account',
    world: together(died(OLD, 0), daemon({ ...NEW, markets: ['ETH_USDT'] })),
    fires: { 25: [], 90: ['KillswitchUnarmed'], 600: ['KillswitchUnarmed'] },
  },
  {
    name: 'no daemon being a target any more',
    world: died(MAIN, 0),
    fires: { 90: ['KillswitchUnarmed'], 130: ['KillswitchAbsent', 'KillswitchGone', 'KillswitchUnarmed'] },
  },
  {
    name: 'a stop that was seen, and nobody who takes over',
    world: ending(
      daemon(MAIN, { [DESIRED]: after(TROUBLE - 1, 1, 0), [EXPIRY]: after(TROUBLE - 1, 1e6, 0) }),
      TROUBLE,
    ),
    fires: { 90: [], 130: ['KillswitchAbsent', 'KillswitchGone'] },
  },
  {
    name: 'a new pod that never gets the timer armed',
    world: together(ending(daemon(OLD), TROUBLE), beginning(daemon(NEW, { [EXPIRY]: flat(0) }), TROUBLE)),
    fires: { 45: [], 90: ['KillswitchUnarmed'] },
  },
];

/** Plays in which something must be heard. */
export const PLAYS: readonly Play[] = [...PAGES, ...TICKETS, ...DEATHS];

/** The market is found in the moment before its first confirmation. */
const arming = { [EXPIRY]: (scrape: number) => (scrape < TROUBLE + 7 ? 0 : scrape * STEP_SECONDS + 55) };

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
    name: 'a market is paused for twenty minutes',
    world: daemon(MAIN, {
      [DESIRED]: (scrape) => (scrape < TROUBLE || scrape > TROUBLE + 240 ? 1 : 0),
      [EXPIRY]: (scrape) => (scrape < TROUBLE || scrape > TROUBLE + 240 ? scrape * STEP_SECONDS + 55 : 0),
      'killswitch_market_held{reason="paused",market="BTC_USDT"}': (scrape) =>
        scrape < TROUBLE || scrape > TROUBLE + 240 ? 0 : 1,
    }),
    minutes: 40,
  },
  {
    name: 'a bot says goodbye',
    world: daemon(MAIN, { ...bot('goodbye'), [DESIRED]: turns(1, 0), [EXPIRY]: turns(1e6, 0) }),
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
      'killswitch_renewal_failures_total{reason="timeout",market="BTC_USDT"}': (scrape) =>
        Math.floor(scrape / 20),
    }),
    minutes: 80,
  },
];

/** Scrapes until this moment after the trouble has been seen. */
export const scrapesUntil = (secondsAfterTrouble: number): number =>
  TROUBLE + secondsAfterTrouble / STEP_SECONDS + 2;

export { scrapesIn };
