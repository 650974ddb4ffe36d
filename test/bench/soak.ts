import { appendFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Fault } from '../../src/simulator/faults.ts';
import { sumOf } from '../process/daemon.ts';
import { eventually } from '../process/program.ts';
import { exchangeAt } from '../process/simulated-exchange.ts';
import type { ProbeAnswer } from './probe.ts';
import { kill, messageOf, startNode } from './processes.ts';
import { marketNames } from './protocol.ts';
import { type Rig, withRig } from './rig.ts';
import { type Judged, judgeFlat, LEAST_SAMPLES, type Sample } from './slope.ts';
import { startDaemon } from './subject.ts';

type Daemon = Awaited<ReturnType<typeof startDaemon>>;

const MARKETS = 2000;
const PROBE = new URL('./probe.ts', import.meta.url).href;
/** One after the other, each followed by as much quiet as the daemon needs to look as it did before. */
const FAULTS: readonly Fault[] = [
  { kind: 'hang', mode: 'hold', forMs: 6000 },
  { kind: 'reset', when: 'after', probability: 0.3, forMs: 6000 },
  { kind: 'status', status: 500, body: 'html', forMs: 6000 },
  { kind: 'throttle', probability: 0.2, forMs: 3000 },
  { kind: 'stale-nonce', probability: 0.2, forMs: 3000 },
  { kind: 'latency', ms: 300, jitterMs: 300, forMs: 6000 },
  { kind: 'cut-off', probability: 0.2, forMs: 6000 },
  { kind: 'slow-body', ms: 3000, probability: 0.1, forMs: 6000 },
];
const ROUND_MS = 20_000;
/** Markets come and go: only rounds that end alike are compared, which every other one does. */
const SAMPLE_EVERY_MS = 2 * ROUND_MS;
const LEAST_MINUTES = (LEAST_SAMPLES * SAMPLE_EVERY_MS) / 60_000;
const FAULT_AT_MS = 1000;
const RELOAD_AT_MS = 9000;
/** Less than a scrape's page is kept for, and no multiple of a beat or a period. */
const LOOK_EVERY_MS = 730;
const LOOKS = 5;
/** Until code is compiled, connections are open and histories full, everything grows. */
const WARM_SHARE = 0.25;
/** What a reload takes out in one round and brings back in the next. */
const COMING_AND_GOING = 50;

const HELP = `npm run soak -- [--minutes N] [--report FILE]

2,000 markets for N minutes (default 10) with faults, reloads, scrapes and beats. Exits with 1 unless no timer lapsed,
and heap, descriptors and whatever else keeps the process alive stayed flat.

--minutes N     at least ${LEAST_MINUTES}: ${LEAST_SAMPLES} samples make a slope, and there is one every ${SAMPLE_EVERY_MS / 1000} s
--report FILE   how many checks passed and failed, as JSON
`;

async function startSimulated(rig: Rig) {
  const events = rig.file('events');
  const args = ['exchange', '--listen', '127.0.0.1:0', '--orders', 'none', '--event-log', events];
  const how = { cores: rig.cores, on: 'others', logFile: rig.file('exchange.log'), env: rig.env } as const;
  const running = startNode([rig.bundle('dist/main.js'), ...args], how);
  const url = await eventually('the address of the exchange', 20_000, () => {
    const [line, rest] = running.log().split('\n', 2);
    return line === undefined || rest === undefined ? null : line;
  });
  return {
    ...exchangeAt(url, () => kill(running)),
    /** How many timers fired. */
    fired: () => readFileSync(events, 'utf8').split('"kind":"timer-fired"').length - 1,
  };
}

/** Writes the configuration with fewer or all markets, in one piece, and has it read. */
function reload(daemon: Daemon, markets: number): void {
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
  writeFileSync(`${daemon.configFile}.new`, JSON.stringify({ ...content, markets: marketNames(markets) }));
  renameSync(`${daemon.configFile}.new`, daemon.configFile);
  daemon.running.child.kill('SIGHUP');
}

/** The least of a few looks: a page that is being sent, or requests on their way, are held for a moment only. */
async function sample(daemon: Daemon, startMs: number): Promise<Sample> {
  const looks: Omit<Sample, 'minute'>[] = [];
  for (let look = 0; look < LOOKS; look += 1) {
    if (look > 0) await sleep(LOOK_EVERY_MS);
    daemon.running.child.send('look');
    const { heapBytes, resources } = await messageOf<ProbeAnswer>(daemon.running);
    const descriptors = readdirSync(`/proc/${daemon.running.pid}/fd`).length;
    looks.push({ heapMb: heapBytes / 2 ** 20, descriptors, resources });
  }
  const least = (what: keyof (typeof looks)[0]) => Math.min(...looks.map((look) => look[what]));
  return {
    minute: (performance.now() - startMs) / 60_000,
    heapMb: least('heapMb'),
    descriptors: least('descriptors'),
    resources: least('resources'),
  };
}

async function soak(rig: Rig, minutes: number): Promise<Judged[]> {
  const exchange = await startSimulated(rig);
  const flags = ['--expose-gc', '--import', PROBE];
  const daemon = await startDaemon(rig, { url: exchange.url, markets: MARKETS, flags });
  await eventually('all timers armed', 120_000, async () =>
    (await daemon.get('/readyz').catch(() => '')).startsWith('ok'),
  );
  const startMs = performance.now();
  const untilMs = startMs + minutes * 60_000;
  const samples: Sample[] = [];
  for (let round = 0; performance.now() < untilMs; round += 1) {
    const roundMs = startMs + round * ROUND_MS;
    await sleep(Math.max(0, roundMs + FAULT_AT_MS - performance.now()));
    await exchange.addFaults(...FAULTS.slice(round % FAULTS.length, (round % FAULTS.length) + 1));
    await sleep(Math.max(0, roundMs + RELOAD_AT_MS - performance.now()));
    reload(daemon, MARKETS - (round % 2 === 0 ? COMING_AND_GOING : 0));
    await sleep(Math.max(0, roundMs + ROUND_MS - LOOKS * LOOK_EVERY_MS - performance.now()));
    const taken = await sample(daemon, startMs);
    if (round % 2 === 1 && taken.minute >= minutes * WARM_SHARE) samples.push(taken);
    const held = `heap ${taken.heapMb.toFixed(1)} MB, ${taken.descriptors} descriptors, ${taken.resources} handles`;
    say(`${taken.minute.toFixed(1)} min: ${held}, ${exchange.fired()} timers fired`);
  }
  const page = await daemon.get('/metrics');
  const lapses = sumOf(page, 'killswitch_lapses_total');
  const reloads = sumOf(page, 'killswitch_config_reloads_total');
  const fired = exchange.fired();
  daemon.running.child.kill('SIGTERM');
  const code = await daemon.running.ended;
  return [
    { what: 'no timer fired', passed: fired === 0, measured: `${fired} fired at the exchange` },
    { what: 'the daemon reports no lapse', passed: lapses === 0, measured: `${lapses} lapses` },
    { what: 'the configuration was read again', passed: reloads > 0, measured: `${reloads} times` },
    ...judgeFlat(samples),
    { what: 'the stop deleted every timer', passed: code === 0, measured: `exit code ${code}` },
  ];
}

const say = (line: string) => void process.stderr.write(`soak: ${line}\n`);

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      report: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(HELP);
  const minutes = Number(values.minutes);
  if (!(minutes >= LEAST_MINUTES && minutes < Infinity))
    throw new Error(`--minutes is ${values.minutes}; allowed: ${LEAST_MINUTES} and more`);
  // Whoever measures for an hour learns before and not after it that the result has no place to go.
  if (values.report !== undefined) appendFileSync(values.report, '');
  const judged = await withRig((rig) => soak(rig, minutes));
  for (const { what, passed, measured } of judged)
    process.stdout.write(`${passed ? 'passed' : 'FAILED'}: ${what} (${measured})\n`);
  const failed = judged.filter(({ passed }) => !passed).length;
  const report = { numPassedTests: judged.length - failed, numFailedTests: failed, testResults: [] };
  if (values.report !== undefined) writeFileSync(values.report, JSON.stringify(report));
  if (failed > 0) process.exitCode = 1;
}

await main(process.argv.slice(2)).catch((error: Error) => {
  say(error.message);
  process.exitCode = 1;
});
