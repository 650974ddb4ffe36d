import { STEP_SECONDS, type Target, TROUBLE, turns, type Values, type World } from './alert-world.ts';

/** A play in which something must be heard. */
export interface Play {
  readonly name: string;
  readonly world: World;
  /** The alerts that fire so many seconds after the trouble began, all of them. */
  readonly fires: Readonly<Record<number, readonly string[]>>;
}

/** A play in which nothing may be heard from beginning to end. */
export interface QuietPlay {
  readonly name: string;
  readonly world: World;
  readonly minutes: number;
}

export const MAIN: Target = { instance: '10.0.0.1:17477', account: 'main' };
export const OLD: Target = { ...MAIN, pod: 'bot-7d9f-abcde' };
export const NEW: Target = { ...OLD, instance: '10.0.0.2:17477', pod: 'bot-84c5-vwxyz' };
export const OTHER: Target = { instance: '10.0.0.9:17477', account: 'other' };
export const EXPIRY = 'killswitch_timer_expiry_timestamp_seconds';
export const DESIRED = 'killswitch_market_armed_desired';

/** The bot comes into this state with the trouble. */
export const botTurns = (state: string): Readonly<Record<string, Values>> => ({
  'killswitch_bot_state{bot="maker",state="alive"}': turns(1, 0),
  [`killswitch_bot_state{bot="maker",state="${state}"}`]: turns(0, 1),
});

export const scrapesIn = (minutes: number): number => (minutes * 60) / STEP_SECONDS;

/** Scrapes until this moment after the trouble has been seen. */
export const scrapesUntil = (secondsAfterTrouble: number): number =>
  TROUBLE + secondsAfterTrouble / STEP_SECONDS + 2;
