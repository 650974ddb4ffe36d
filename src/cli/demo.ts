import type { Command } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { Clock } from '../ports.ts';
import { exitCodeOf } from './bot-process.ts';
import { type DemoStage, setStage } from './demo-stage.ts';
import { Interrupted, tellStory } from './demo-story.ts';
import { type Edge, EXIT } from './edge.ts';
import { barFor } from './table.ts';
import { createTimeline, type Timeline } from './timeline.ts';

/**
 * `demo`: tells in less than a minute what the daemon is for, with a real bot process, at an exchange in this process.
 * Ends with 0, with 130 after Ctrl-C (143 after SIGTERM), and with 70 where something went another way than it should.
 */
export function registerDemo(program: Command, edge: Edge): void {
  program
    .command('demo')
    .description(
      'see in a minute what it is for: a bot trades, hangs, comes back and ends; nothing leaves this machine',
    )
    .action(() => demonstrate(edge, createSystemClock()));
}

async function demonstrate(edge: Edge, clock: Clock): Promise<void> {
  let interruptedBy: 'SIGINT' | 'SIGTERM' | null = null;
  let stage: DemoStage | null = null;
  const fail = (error: unknown) => {
    edge.err(`killswitchd demo: ${error instanceof Error ? error.message : String(error)}`);
    const exit = () => edge.exitNow(EXIT.internal);
    if (stage === null) exit();
    else stage.end().then(exit, exit);
  };
  edge.onCrash(fail);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    edge.onSignal(signal, () => {
      interruptedBy ??= signal;
    });
  }
  const timeline = createTimeline(edge, clock);
  introduce(timeline);
  try {
    stage = await setStage(edge, clock);
    await tellStory({
      stage,
      timeline,
      clock,
      bar: edge.screen === undefined ? null : barFor(edge.env),
      isInterrupted: () => interruptedBy !== null || edge.readerGone?.() === true,
    });
    await stage.end();
    conclude(timeline);
    edge.exitNow(EXIT.ok);
  } catch (error) {
    if (!(error instanceof Interrupted)) {
      fail(error);
      return;
    }
    timeline.say('Demo', 'Interrupted: ends the bot, deletes the timers.');
    await stage?.end();
    edge.exitNow(exitCodeOf({ code: null, signal: interruptedBy ?? 'SIGPIPE' }));
  }
}

function introduce(timeline: Timeline): void {
  timeline.title(
    'killswitchd demo: what a kill switch does for the orders of a trading bot, in about 45 s. All of it happens on this machine: no account, no key, no money. Ctrl-C ends it.',
  );
}

function conclude(timeline: Timeline): void {
  timeline.title(
    'That was all. Next, your own bot: the clients for Python, Node and shell are in clients and config/clients; start it with',
    'killswitchd exec --embedded-exchange --markets BTC_USDT --liveness-mode beat --control-listen 127.0.0.1:0 -- python3 YOUR-BOT.py',
  );
}
