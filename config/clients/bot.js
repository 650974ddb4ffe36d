// A bot that tells killswitchd that it lives. Needs Node 20 or later.
//
//   KILLSWITCHD_CONTROL=unix:/run/killswitchd/control.sock node bot.js
//
// Beat from the loop that decides what to trade, at least every 5 seconds. Never from a timer or worker of its own: it
// would go on beating while the loop hangs. TypeScript finds the types of `killswitchd/bot` by itself.

import { setTimeout as sleep } from 'node:timers/promises';
import { KillSwitch } from 'killswitchd/bot';

let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    stopping = true;
  });
}

let killSwitch;
try {
  killSwitch = new KillSwitch();
} catch (error) {
  console.error(`bot.js: ${error.message}`);
  process.exit(1);
}

// What is thrown here says `fail`, and the exchange cancels the orders. A clean end says goodbye.
await killSwitch.run(async () => {
  let wasArmed = null;
  while (!stopping) {
    const armed = await killSwitch.beat();
    if (armed !== wasArmed) {
      console.log(armed ? 'armed: orders may go out' : 'not armed: orders are held back');
      wasArmed = armed;
    }
    if (armed) {
      // Decide and place orders here.
    }
    await sleep(1000);
  }
  // Cancel your orders here, before the daemon stops guarding them.
});
console.log('goodbye');
