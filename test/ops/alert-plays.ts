import { botTurns, DESIRED, EXPIRY, MAIN, type Play } from './alert-stage.ts';
import {
  beginning,
  counts,
  countsOnce,
  daemon,
  flat,
  renewedUntilTrouble,
  TROUBLE,
  together,
  turns,
  type Values,
} from './alert-world.ts';

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

/** The same as `renewedUntilTrouble` with a timeout of 30 s. */
const renewedUntilTrouble30: Values = (scrape) => Number(renewedUntilTrouble(scrape)) - 30;

export const PAGES: readonly Play[] = [
  wrong(
    'renewals that do not get through',
    { [EXPIRY]: renewedUntilTrouble },
    {
      20: [],
      // Of 60 s, 55 were left at the last scrape before the trouble: by now a third is left.
      35: ['KillswitchTimerRunningOut'],
      75: ['KillswitchTimerRunningOut'],
      100: ['KillswitchTimerRunningOut', 'KillswitchUnarmed'],
    },
  ),
  wrong(
    'renewals of a short timeout that do not get through',
    {
      [EXPIRY]: renewedUntilTrouble30,
      killswitch_timer_timeout_seconds: flat(30),
    },
    { 5: [], 15: ['KillswitchTimerRunningOut'] },
  ),
  only('KillswitchUnarmed', 'a market that was never armed', { [EXPIRY]: turns(1e6, 0) }, 25, 40),
  only('KillswitchLapsed', 'a timer that fired', { killswitch_lapses_total: countsOnce }, -5, 15),
  only(
    'KillswitchHeldAfterLapse',
    'a market that is held after its lapse',
    {
      'killswitch_market_held{reason="lapsed",market="BTC_USDT"}': turns('_', 1),
      [DESIRED]: turns(1, 0),
    },
    -5,
    10,
  ),
  only('KillswitchKeyRefused', 'a key that is refused', { killswitch_authorised: turns(1, 0) }, 10, 20),
  only(
    'KillswitchMarketRejected',
    'a market that is refused',
    { 'killswitch_market_state{state="rejected",market="BTC_USDT"}': turns('_', 1) },
    25,
    35,
  ),
  only(
    'KillswitchBotSilent',
    'a bot that is silent',
    { ...botTurns('stale'), [DESIRED]: turns(1, 0) },
    10,
    20,
  ),
  only('KillswitchBotSilent', 'a bot that failed', { ...botTurns('failed'), [DESIRED]: turns(1, 0) }, 10, 20),
  only(
    'KillswitchTripFailing',
    'a trip that does not get through',
    { 'killswitch_request_failures_total{purpose="trip",reason="timeout"}': counts(1) },
    5,
    30,
  ),
  only('KillswitchStuck', 'a loop that stands still', { killswitch_live: turns(1, 0) }, 10, 20),
];

export const TICKETS: readonly Play[] = [
  only('KillswitchOutage', 'an outage', { killswitch_outage_active: turns(0, 1) }, 25, 60),
  only('KillswitchNearMiss', 'a guarantee that ran out', { killswitch_overdue_total: countsOnce }, -5, 30),
  only(
    'KillswitchRenewalsFailing',
    'every second renewal failing',
    { 'killswitch_request_failures_total{purpose="renew",reason="timeout"}': counts(0.5) },
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
    { killswitch_survivable_outage_ratio: turns(0.87, 0.25) },
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
      'killswitch_market_held{reason="disarmed",market="BTC_USDT"}': turns('_', 1),
      [DESIRED]: turns(1, 0),
      [EXPIRY]: turns(1e6, 0),
    },
    3500,
    3660,
  ),
  only(
    'KillswitchDeleteFailing',
    'a delete that does not get through',
    { 'killswitch_request_failures_total{purpose="delete",reason="timeout"}': counts(0.5) },
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
  only(
    'KillswitchNotifyFailing',
    'a receiver that takes no messages',
    { 'killswitch_notify_failures_total{what="message"}': counts(1) },
    10,
    60,
  ),
  {
    name: 'two accounts whose targets do not say which they are',
    world: together(daemon({ instance: 'a:17477' }), beginning(daemon({ instance: 'b:17477' }), TROUBLE)),
    fires: { 580: [], 640: ['KillswitchGuardedTwice'] },
  },
];
