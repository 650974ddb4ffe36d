import { DESIRED, EXPIRY, MAIN, NEW, OLD, OTHER, type Play } from './alert-stage.ts';
import {
  beginning,
  daemon,
  ending,
  flat,
  type Target,
  TROUBLE,
  together,
  type Values,
} from './alert-world.ts';

const lastSeen =
  (before: number, then: number): Values =>
  (scrape) =>
    scrape < TROUBLE - 1 ? before : then;
const died = (target: Target, down: number) => ending(daemon(target), TROUBLE, down);

/** What is heard of daemons that are dead or gone. */
export const DEATHS: readonly Play[] = [
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
    name: 'a pod that is dead, while one of another account has its address',
    world: together(
      died({ ...OLD, account: 'main' }, 0),
      daemon({ ...OLD, account: 'other', pod: 'namesake' }),
    ),
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
    world: together(ending(daemon(OLD), TROUBLE), beginning(daemon(NEW, { [EXPIRY]: flat(0) }), TROUBLE)),
    fires: { 45: [], 90: ['KillswitchUnarmed'] },
  },
];
