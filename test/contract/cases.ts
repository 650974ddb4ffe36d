import { ACCOUNT_CASES } from './cases-accounts.ts';
import { GENERAL_CASES } from './cases-general.ts';
import { ORDER_CASES } from './cases-orders.ts';
import { REPEAT_CASES } from './cases-repeats.ts';
import { TIMER_CASES } from './cases-timers.ts';
import type { Case } from './steps.ts';

/** Every case of the contract suite, in the order of the table in `docs/api.md`. */
export const CASES: readonly Case[] = [
  ...GENERAL_CASES,
  ...REPEAT_CASES,
  ...ORDER_CASES,
  ...TIMER_CASES,
  ...ACCOUNT_CASES,
];
