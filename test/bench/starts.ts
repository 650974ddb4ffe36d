import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { eventually, freePort } from '../process/program.ts';
import type { Stage } from './fleets.ts';
import { startNode } from './processes.ts';
import { nowMs } from './protocol.ts';

/** How long the packaged program takes to say its version, and what `npm start` runs to arm its markets. */
export async function runStarts(stage: Stage): Promise<void> {
  const { rig, note, say } = stage;
  say('starts');
  for (let round = 0; round < 7; round += 1) {
    note('version', 'floor', timeOf(['-e', '0']), round);
    note('version', 'daemon', timeOf([rig.bundle('dist/main.js'), 'version']), round);
  }
  for (let round = 0; round < stage.rounds; round += 1) await startAll(stage, round);
}

function timeOf(args: readonly string[]): number {
  const before = performance.now();
  execFileSync(process.execPath, args, { stdio: 'ignore' });
  return performance.now() - before;
}

async function startAll({ rig, note }: Stage, round: number): Promise<void> {
  const file = rig.file('local.yaml');
  const local = readFileSync(rig.bundle('config/local.yaml'), 'utf8');
  writeFileSync(file, local.replace('127.0.0.1:17477', `127.0.0.1:${await freePort()}`));
  const exec = [rig.bundle('dist/main.js'), 'exec', '--embedded-exchange', '--config', file, '--'];
  const args = [...exec, process.execPath, rig.bundle('config/clients/bot.js')];
  const running = startNode(args, { cores: rig.cores, on: 'subject', logFile: rig.file('start.log') });
  await eventually('all armed', 20_000, () => running.log().includes('markets are armed'));
  note('start', 'daemon', nowMs() - running.startedAt, round);
  running.child.kill('SIGTERM');
  await running.ended;
}
