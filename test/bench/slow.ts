import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SubjectName } from './book.ts';
import type { Stage } from './fleets.ts';
import { kill } from './processes.ts';
import { configOf, startDaemon, startPeer } from './subject.ts';

/** An exchange that makes it hard. */
interface Case {
  readonly id: string;
  readonly answerMs?: number;
  readonly sick?: number;
  readonly markets: number;
  readonly timeoutSeconds: number;
  readonly subjects: readonly SubjectName[];
  readonly seconds: number;
}

const BOTH = ['daemon', 'undici'] as const;
/** In seconds, of the picture: half of them at a time. */
export const ANSWERS = [0.05, 0.2, 0.5, 1, 1.7, 2.5, 3.5, 5] as const;
const SHORT = { markets: 20, timeoutSeconds: 5, subjects: BOTH, seconds: 20 };
const answering = (s: number): Case => ({ ...SHORT, id: `T=5, ${s} s`, answerMs: s * 1000 });
const LONG = { answerMs: 3500, timeoutSeconds: 60, seconds: 66 };
const LONGER: readonly Case[] = [
  { ...LONG, id: 'T=60, 3.5 s', markets: 200, subjects: BOTH },
  // One request after the other: more would not fit three times into the timeout with room for what goes wrong.
  { ...LONG, id: 'T=60, 3.5 s, rising', markets: 4, subjects: ['rising'] },
  { id: 'sick', sick: 10, markets: 100, timeoutSeconds: 15, subjects: BOTH, seconds: 60 },
];

/** Answers that take long, and markets that get none: what is left of the timers. Nothing here costs much of a core. */
export async function runSlow(stage: Stage): Promise<void> {
  stage.say('slow answers, sick markets');
  await stage.attempt('what check-config says of a slow exchange', () => askCheckConfig(stage));
  const together = (cases: readonly Case[]) =>
    Promise.all(
      cases.flatMap((one) =>
        one.subjects.map((name) => stage.attempt(`${one.id}: ${name}`, () => runCase(stage, one, name))),
      ),
    );
  if (stage.quick) return void (await together([0.05, 1.7, 5].map(answering)));
  const longer = together(LONGER);
  await together(ANSWERS.slice(0, 4).map(answering));
  await together(ANSWERS.slice(4).map(answering));
  await longer;
}

async function runCase({ rig, note, shorter }: Stage, one: Case, name: SubjectName): Promise<void> {
  const { id, markets, timeoutSeconds, seconds, sick = 0 } = one;
  const exchange = await rig.exchange(one);
  const { url } = exchange;
  const periodMs = Math.max(1000, timeoutSeconds * 100);
  const running =
    name === 'undici'
      ? startPeer(rig, { kind: name, url, markets, timeoutSeconds, periodMs })
      : (await startDaemon(rig, { url, markets, config: configFor(name, timeoutSeconds) })).running;
  try {
    await exchange.allArmed(markets - sick);
    await exchange.ask('count');
    await sleep(shorter(seconds * 1000));
    const { leastSlack, lapses } = await exchange.ask('read');
    note(`slack/${id}`, name, leastSlack * 100);
    note(`lapses/${id}`, name, lapses);
  } finally {
    await Promise.all([kill(running), exchange.end()]);
  }
}

function configFor(name: SubjectName, timeoutSeconds: number) {
  const nonce = name === 'rising' ? 'increasing' : 'window';
  return { exchange: { nonce }, defaults: { timeoutSeconds } };
}

/** Rising nonces for 20 markets with T = 5 at answers of 1.7 s: more than the wire can carry. */
async function askCheckConfig({ rig, note }: Stage): Promise<void> {
  const { url, end } = await rig.exchange({ answerMs: 1700 });
  const file = rig.file('check.json');
  const options = { url, markets: 20, config: configFor('rising', 5) };
  writeFileSync(file, JSON.stringify(configOf(options, '127.0.0.1:0', rig.file('s'))));
  const args = [rig.bundle('dist/main.js'), 'check-config', '--live', '--config', file];
  const said = execFileSync(process.execPath, args, { env: rig.env, encoding: 'utf8' });
  note('said', 'rising', Number(/^Warning: .* can be carried/m.test(said)));
  await end();
}
