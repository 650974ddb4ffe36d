import {
  beginning,
  botTurns,
  type Changes,
  counts,
  DESIRED,
  daemon,
  EXPIRY,
  ending,
  MAIN,
  NEW,
  OLD,
  OTHER,
  onlyMarkets,
  renewed,
  seenEvery,
  type Target,
  TROUBLE,
  together,
  turns,
  type Values,
  type World,
} from './alert-world.ts';

/** A play in which something must be heard. */
export interface Play {
  readonly name: string;
  readonly world: World;
  /** The alerts that fire so many seconds after the trouble began, all of them. */
  readonly fires: Readonly<Record<number, readonly string[]>>;
}

/** One alert, silent until `silent` seconds after the trouble began, firing at `firing`: nothing else is wrong. */
const only = (alert: string, name: string, change: Changes, silent: number, firing: number): Play => ({
  name,
  world: daemon(MAIN, change),
  fires: { [silent]: [], [firing]: [alert] },
});

/** The last renewal was the one before the trouble. */
const renewedUntilTrouble =
  (leftSeconds: number): Values =>
  (scrape) =>
    renewed(leftSeconds)(Math.min(scrape, TROUBLE - 1));
const failing = (purpose: string, perScrape: number): Changes => ({
  [`killswitch_request_failures_total{purpose="${purpose}",reason="timeout"}`]: counts(perScrape),
});
const held = (reason: string): Changes => ({
  [`killswitch_market_held{reason="${reason}",market="BTC_USDT"}`]: turns('_', 1),
  [DESIRED]: turns(1, 0),
});
const dead = (state: string): Changes => ({ ...botTurns(state), [DESIRED]: turns(1, 0) });
/** A counter that counts one event. */
const once = turns(0, 1);

const SHORT: Changes = { [EXPIRY]: renewedUntilTrouble(25), killswitch_timer_timeout_seconds: 30 };
const LONG: Changes = { [EXPIRY]: renewedUntilTrouble(595), killswitch_timer_timeout_seconds: 600 };
const KEY_REFUSED: Changes = { killswitch_authorised: turns(1, 0) };
const REJECTED: Changes = { 'killswitch_market_state{state="rejected",market="BTC_USDT"}': turns('_', 1) };

const PAGES: readonly Play[] = [
  {
    name: 'renewals that do not get through',
    world: daemon(MAIN, { [EXPIRY]: renewedUntilTrouble(55) }),
    fires: {
      20: [],
      // Of 60 s, 55 were left at the last scrape before the trouble: by now a third is left.
      35: ['KillswitchTimerRunningOut'],
      75: ['KillswitchTimerRunningOut'],
      100: ['KillswitchTimerRunningOut', 'KillswitchUnarmed'],
    },
  },
  {
    name: 'a timer that ends between rare scrapes',
    world: seenEvery(12, daemon(MAIN, LONG)),
    fires: Object.fromEntries(
      [300, 320, 340, 350, 380, 410].map((at) => [at, ['KillswitchTimerRunningOut']]),
    ),
  },
  only('KillswitchTimerRunningOut', 'no renewal of a short timeout getting through', SHORT, 5, 15),
  only('KillswitchUnarmed', 'a market that was never armed', { [EXPIRY]: turns(1e6, 0) }, 25, 40),
  only('KillswitchLapsed', 'a timer that fired', { killswitch_lapses_total: once }, -5, 15),
  only('KillswitchHeldAfterLapse', 'a market that is held after its lapse', held('lapsed'), -5, 10),
  only('KillswitchKeyRefused', 'a key that is refused', KEY_REFUSED, 10, 20),
  only(
    'KillswitchKeyRefused',
    'a key that is refused, not each market',
    { ...KEY_REFUSED, ...REJECTED },
    10,
    60,
  ),
  only('KillswitchMarketRejected', 'a market that is refused', REJECTED, 25, 35),
  only('KillswitchBotSilent', 'a bot that is silent', dead('stale'), 10, 20),
  only('KillswitchBotSilent', 'a bot that failed', dead('failed'), 10, 20),
  only('KillswitchTripFailing', 'a trip that does not get through', failing('trip', 1), 5, 30),
  only('KillswitchStuck', 'a loop that stands still', { killswitch_live: turns(1, 0) }, 10, 20),
];

const SLOW_BUCKET = 'killswitch_renewal_slack_ratio_bucket{le="0.5"}';
const WINDOW = 'killswitch_survivable_outage_ratio';
const SKEW = 'killswitch_clock_skew_seconds';
const RELOADED = 'killswitch_config_last_reload_successful';
const REFUSED = 'killswitch_control_refused_total{reason="unauthorised"}';
const STARTED = 'process_start_time_seconds';
const ALTERED = 'killswitch_altered_replies_total';
const DISARMED: Changes = { ...held('disarmed'), [EXPIRY]: turns(1e6, 0) };
const UNSENT = 'killswitch_notify_failures_total{what="message"}';
const starts: Values = (scrape) => Math.floor(Math.max(TROUBLE, scrape) / 12);

const TICKETS: readonly Play[] = [
  only('KillswitchOutage', 'an outage', { killswitch_outage_active: turns(0, 1) }, 25, 60),
  only('KillswitchNearMiss', 'a guarantee that ran out', { killswitch_overdue_total: once }, -5, 30),
  only('KillswitchRenewalsFailing', 'every second renewal failing', failing('renew', 0.5), 240, 900),
  only('KillswitchSlackLow', 'renewals that come late', { [SLOW_BUCKET]: counts(0.5) }, 240, 900),
  only('KillswitchLittleRoom', 'a window of a quarter', { [WINDOW]: turns(0.87, 0.25) }, 580, 640),
  only('KillswitchSlowedDown', 'a stretched cadence', { killswitch_cadence_factor: turns(1, 1.5) }, 580, 640),
  only('KillswitchPingsFailing', 'pings without an answer', { killswitch_api_up: turns(1, 0) }, 280, 340),
  only('KillswitchClockSkewed', 'a clock that is late', { [SKEW]: turns(0, 3) }, 280, 340),
  only('KillswitchClockSkewed', 'a clock that is ahead', { [SKEW]: turns(0, -3) }, 280, 340),
  only('KillswitchHostStalls', 'a host that stalls', { killswitch_stalls_total: counts(0.1) }, 10, 600),
  only('KillswitchRestarting', 'a process that does not stay', { [STARTED]: starts }, 30, 600),
  only('KillswitchReloadRejected', 'a rejected configuration', { [RELOADED]: turns(1, 0) }, 50, 90),
  only('KillswitchOutOfGuard', 'a market that stays disarmed', DISARMED, 3500, 3660),
  only('KillswitchDeleteFailing', 'a delete that does not get through', failing('delete', 0.5), 10, 120),
  only('KillswitchReplyAltered', 'another timer than asked for', { [ALTERED]: once }, -5, 30),
  only('KillswitchStrangerKnocks', 'a stranger at the control listener', { [REFUSED]: counts(1) }, 10, 60),
  only('KillswitchLogLost', 'log lines that nobody takes', { killswitch_log_dropped_total: once }, -5, 30),
  only('KillswitchNotifyFailing', 'a receiver that takes no messages', { [UNSENT]: counts(1) }, 10, 60),
  {
    name: 'two accounts whose targets do not say which they are',
    world: together(daemon({ instance: 'a:17477' }), beginning(daemon({ instance: 'b:17477' }), TROUBLE)),
    fires: { 580: [], 640: ['KillswitchGuardedTwice'] },
  },
];

const lastSeen =
  (before: number, then: number): Values =>
  (scrape) =>
    scrape < TROUBLE - 1 ? before : then;
/** Of a target that answers with the metrics of another program. */
const upOf = (target: Target): World =>
  new Map([...daemon(target)].filter(([name]) => name.startsWith('up{')));
const died = (target: Target, down: number) => ending(daemon(target), TROUBLE, down);

/** What is heard of daemons that are dead or gone. */
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
    name: 'a program that took the port of a dead daemon',
    world: together(ending(daemon(MAIN), TROUBLE), beginning(upOf(MAIN), TROUBLE)),
    fires: { 25: [], 40: ['KillswitchDown'], 900: ['KillswitchDown'] },
  },
  {
    name: 'a daemon that is dead beside one that guards the same market on another account',
    world: together(died(MAIN, 1e6), daemon(OTHER)),
    fires: { 90: ['KillswitchDown', 'KillswitchUnarmed'] },
  },
  {
    name: 'a pod that is dead, while one of another account has its address',
    world: together(died(OLD, 0), daemon({ ...OLD, account: 'other', pod: 'namesake' })),
    fires: { 90: ['KillswitchUnarmed'] },
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
    name: 'a fleet with a shard that does not run',
    world: together(
      daemon(MAIN, { killswitch_shard_markets: turns(1, 0) }),
      ending(onlyMarkets(daemon(MAIN)), TROUBLE),
    ),
    fires: { 110: [], 130: ['KillswitchShardMissing'], 900: ['KillswitchShardMissing'] },
  },
  {
    name: 'no daemon being a target any more',
    world: died(MAIN, 0),
    fires: { 90: ['KillswitchUnarmed'], 130: ['KillswitchAbsent', 'KillswitchGone', 'KillswitchUnarmed'] },
  },
  {
    name: 'a stop that was seen, and nobody who takes over',
    world: ending(daemon(MAIN, { [DESIRED]: lastSeen(1, 0), [EXPIRY]: lastSeen(1e6, 0) }), TROUBLE),
    fires: { 90: [], 130: ['KillswitchAbsent', 'KillswitchGone'] },
  },
  {
    name: 'a new pod that never gets the timer armed',
    world: together(ending(daemon(OLD), TROUBLE), beginning(daemon(NEW, { [EXPIRY]: 0 }), TROUBLE)),
    fires: { 45: [], 90: ['KillswitchUnarmed'] },
  },
  {
    name: 'a new pod that arms a timer too late',
    world: together(ending(daemon(OLD), TROUBLE), beginning(daemon(NEW), TROUBLE + 16)),
    fires: { 75: [], 85: ['KillswitchTakenOverLate'], 650: ['KillswitchTakenOverLate'], 700: [] },
  },
  {
    name: 'a service that is started again too late',
    world: together(
      ending(daemon(MAIN, { [EXPIRY]: renewed(10) }), TROUBLE, 4),
      beginning(daemon(MAIN), TROUBLE + 4),
    ),
    fires: { 15: [], 25: ['KillswitchTakenOverLate'], 590: ['KillswitchTakenOverLate'], 640: [] },
  },
];

export const PLAYS: readonly Play[] = [...PAGES, ...TICKETS, ...DEATHS];

/** The market is found in the moment before its first confirmation. */
const arming: Changes = { [EXPIRY]: (scrape) => (scrape < TROUBLE + 7 ? 0 : renewed(55)(scrape)) };
/** A daemon of its own whose timer always has so much slack left at a scrape, in seconds. */
const ofTimeout = (seconds: number, slack: number) =>
  daemon(
    { instance: `t${seconds}:17477`, account: `t${seconds}` },
    { killswitch_timer_timeout_seconds: seconds, [EXPIRY]: renewed(slack) },
  );
/** From the trouble on, for twenty minutes. */
const isPaused = (scrape: number) => scrape >= TROUBLE && scrape <= TROUBLE + 240;

const other = (name: string) => onlyMarkets(daemon({ ...MAIN, markets: [name] }));
const restarted = ending(daemon(MAIN, { killswitch_overdue_total: 4 }), TROUBLE, 2);

/** So many minutes in which nothing may be heard from beginning to end. */
export const QUIET_PLAYS: Readonly<Record<string, readonly [minutes: number, ...worlds: readonly World[]]>> =
  {
    'all is well': [90, daemon(MAIN), daemon(OTHER)],
    'a pod is replaced by one with another name and address, half a minute later': [
      80,
      ending(daemon(OLD), TROUBLE, 4),
      beginning(daemon(NEW, arming), TROUBLE + 6),
    ],
    'two pods overlap while one takes over from the other': [
      80,
      ending(daemon(OLD), TROUBLE, 4),
      beginning(daemon(NEW), TROUBLE - 24),
    ],
    'a service is restarted in its place, and its counters begin anew': [
      80,
      restarted,
      beginning(daemon(MAIN, { [STARTED]: 900 }), TROUBLE + 2),
    ],
    'a reload takes a market out': [80, daemon(MAIN), ending(other('ETH_USDT'), TROUBLE)],
    'timers of 5, 10 and 30 s are renewed as they should be': [
      30,
      ...[5, 10, 30].map((t) => ofTimeout(t, t * 0.85)),
    ],
    'a slowed-down daemon renews every third of the timeout': [
      30,
      ...[30, 60].map((t) => ofTimeout(t, (t * 2) / 3 - 1)),
    ],
    'a reload makes the timeout longer, and a bot that was silent for long comes back': [
      30,
      daemon(MAIN, {
        killswitch_timer_timeout_seconds: turns(10, 60),
        [EXPIRY]: (scrape) => renewed(scrape > TROUBLE ? 55 : 9)(scrape),
      }),
      daemon(OTHER, {
        [DESIRED]: turns(0, 1),
        [EXPIRY]: (scrape) => (scrape > TROUBLE ? renewed(55)(scrape) : 100),
      }),
    ],
    'a market is paused for twenty minutes': [
      40,
      daemon(MAIN, {
        [DESIRED]: (scrape) => (isPaused(scrape) ? 0 : 1),
        [EXPIRY]: (scrape) => (isPaused(scrape) ? 0 : renewed(55)(scrape)),
        'killswitch_market_held{reason="paused",market="BTC_USDT"}': (scrape) => (isPaused(scrape) ? 1 : '_'),
      }),
    ],
    'a bot says goodbye': [80, daemon(MAIN, { ...dead('goodbye'), [EXPIRY]: turns(1e6, 0) })],
    'a pod takes over with the market paused': [
      50,
      ending(daemon(OLD), TROUBLE),
      beginning(daemon(NEW, { [DESIRED]: 0, [EXPIRY]: 0 }), TROUBLE + 2),
    ],
    'single failures, a short outage and a scrape that failed': [
      80,
      daemon(MAIN, {
        up: (scrape) => (scrape % 100 === 99 ? 0 : 1),
        killswitch_outage_active: (scrape) => (scrape % 100 < 4 ? 1 : 0),
        'killswitch_request_failures_total{purpose="renew",reason="timeout"}': (scrape) =>
          Math.floor(scrape / 20),
      }),
    ],
  };
