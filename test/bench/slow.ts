import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { SubjectName } from './book.ts';
import { COMPARED, type Stage } from './fleets.ts';
import { configFor, configOf, type Fleet, withSubject } from './subject.ts';

/** An exchange that makes it hard. */
interface Case extends Fleet {
  readonly id: string;
  readonly answerMs?: number;
  readonly subjects: readonly SubjectName[];
  readonly seconds: number;
}

const BOTH = ['daemon', 'undici'] as const;
/** In seconds, of the picture: half of them at a time. */
export const ANSWERS = [0.05, 0.2, 0.5, 1, 1.7, 2.5, 3.5, 5] as const;
const SHORT = { markets: 20, timeoutSeconds: 5, subjects: COMPARED, seconds: 20 };
const answering = (s: number): Case => ({ ...SHORT, id: `T=5, ${s} s`, answerMs: s * 1000 });
const LONG = { answerMs: 3500, timeoutSeconds: 60, seconds: 66 };
const LONGER: readonly Case[] = [
  { ...LONG, id: 'T=60, 3.5 s', markets: 200, subjects: BOTH },
  // As many as the wire carries when nonces must rise.
  { ...LONG, id: 'T=60, 3.5 s, rising', markets: 30, subjects: ['rising'] },
  { ...SHORT, id: 'T=5, 1.7 s, rising', answerMs: 1700, markets: 2, subjects: ['rising'] },
  { id: 'sick', sick: 10, markets: 100, timeoutSeconds: 15, subjects: BOTH, seconds: 60 },
];

/** Answers that take long, and markets that get none: what is left of the timers. Nothing here costs much of a core. */
export async function runSlow(stage: Stage): Promise<void> {
  stage.say('slow answers, sick markets');
  const together = (cases: readonly Case[]) =>
    Promise.all(
      cases.flatMap((one) =>
        one.subjects.map((name) => stage.attempt(`${one.id}: ${name}`, () => runCase(stage, one, name))),
      ),
    );
  const says = stage.attempt('what check-config says of a slow exchange', () => askCheckConfig(stage));
  const longer = together(LONGER);
  await together(ANSWERS.slice(0, 4).map(answering));
  await together(ANSWERS.slice(4).map(answering));
  await Promise.all([says, longer]);
}

async function runCase({ rig, note, shorter }: Stage, one: Case, name: SubjectName): Promise<void> {
  const { id, markets, timeoutSeconds, seconds, sick = 0 } = one;
  const exchange = await rig.exchange(one);
  await withSubject(rig, exchange, name, { markets, timeoutSeconds, sick }, async () => {
    await exchange.ask('count');
    await sleep(shorter(seconds * 1000));
    const { leastSlack, lapses } = await exchange.ask('read');
    note(`slack/${id}`, name, leastSlack * 100);
    note(`lapses/${id}`, name, lapses);
  });
  await exchange.end();
}

/** Rising nonces for 200 markets at answers of 3.5 s: more than the wire can carry. */
async function askCheckConfig({ rig, note }: Stage): Promise<void> {
  const { url, end } = await rig.exchange(LONG);
  const file = rig.file('check.json');
  const options = { url, markets: 200, config: configFor('rising', LONG.timeoutSeconds) };
  writeFileSync(file, JSON.stringify(configOf(options, '127.0.0.1:0', rig.file('s'))));
  const args = [rig.bundle('dist/main.js'), 'check-config', '--live', '--config', file];
  // It ends with 78 where it says so.
  const ended = promisify(execFile)(process.execPath, args, { env: rig.env });
  const { stdout } = await ended.catch((failed: { readonly stdout: string }) => failed);
  note('said', 'rising', Number(/^Warning: .* can be carried/m.test(stdout)));
  await end();
}
