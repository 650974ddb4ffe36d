import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { collectionsIn } from './collections.ts';
import { type CpuProfile, readProfile } from './cpu-profile.ts';
import { wholeNumber, writableFolder } from './flags.ts';
import { askMemory, measureDaemon, PROBE } from './measures.ts';
import { waitForAll, waitForEnd } from './processes.ts';
import { type Profiled, renderProfile } from './profile-report.ts';
import { nowMs } from './protocol.ts';
import { type Rig, withRig } from './rig.ts';
import { type DaemonSubject, startDaemon } from './subject.ts';

const HELP = `npm run profile -- [--markets N] [--seconds N] [--out DIR]

What the main thread of the daemon is busy with, and what its memory is, once all of its markets run on their grid.

--markets N   how many markets, at most 50000 (default 10000)
--seconds N   how long to measure, at most 600 (default 60)
--out DIR     where the profile and the log go (default: a new folder under the directory for temporary files)
`;

const MOST_MARKETS = 50_000;
const MOST_SECONDS = 600;
/** Until the burst of the start is over and the code that runs all the time is compiled. */
const SETTLE_MS = 15_000;
const SAMPLE_EVERY_US = 500;
const PROFILE = 'killswitchd.cpuprofile';
const LOG = 'killswitchd.log';

interface Wanted {
  readonly markets: number;
  readonly seconds: number;
  readonly out: string | undefined;
}

/** Null where help was all that was asked for. */
function read(args: readonly string[]): Wanted | null {
  const { values } = parseFlags(args);
  if (values.help) return null;
  return {
    markets: wholeNumber('markets', values.markets, MOST_MARKETS),
    seconds: wholeNumber('seconds', values.seconds, MOST_SECONDS),
    out: values.out === undefined ? undefined : writableFolder('out', values.out),
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        markets: { type: 'string', default: '10000' },
        seconds: { type: 'string', default: '60' },
        out: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    // Node goes on with how such an argument could be passed all the same.
    throw new Error(messageOf(error).split(/\.\s/, 1)[0], { cause: error });
  }
}

interface Profile {
  readonly profiled: Profiled;
  /** As Node wrote it. */
  readonly written: string;
  readonly log: string;
}

/** What was measured while the daemon ran, and after that in what it left. */
async function profile(rig: Rig, { markets, seconds }: Wanted): Promise<Profile> {
  const exchange = await rig.exchange('tls');
  const daemon = await startDaemon(rig, {
    url: exchange.url,
    markets,
    preload: [PROBE],
    flags: [
      '--cpu-prof',
      `--cpu-prof-interval=${SAMPLE_EVERY_US}`,
      `--cpu-prof-dir=${rig.directory}`,
      '--trace-gc',
      '--expose-gc',
    ],
    channel: true,
  });
  const work = async () => {
    await waitForAll(exchange, markets);
    say(`all are armed; measuring for ${seconds} s, in ${SETTLE_MS / 1000} s`);
    await sleep(SETTLE_MS);
    const window = await measureDaemon(exchange, daemon, seconds);
    return { window, memory: await askMemory(daemon.running) };
  };
  const measured = await Promise.race([work(), failOnEnd(daemon)]);
  say('stopping');
  daemon.running.signal('SIGTERM');
  await waitForEnd(daemon.running);
  const { fromMs, untilMs } = measured.window;
  const { startedAt } = daemon.running;
  const log = daemon.running.log();
  const written = readFileSync(profileOf(rig, daemon), 'utf8');
  const ran = { fromUs: monotonicUs(fromMs), untilUs: monotonicUs(untilMs) };
  const profiled = {
    markets,
    ...measured,
    ran,
    busy: readProfile(JSON.parse(written) as CpuProfile, ran),
    collections: collectionsIn(log, fromMs - startedAt, untilMs - startedAt),
  };
  return { profiled, written, log };
}

async function failOnEnd({ running }: DaemonSubject): Promise<never> {
  await running.ended;
  throw new Error(`the daemon ended:\n${running.log().slice(-2000)}`);
}

/** The profile of the main thread: it has the number 0, and each worker leaves a profile of its own. */
function profileOf(rig: Rig, { running }: DaemonSubject): string {
  const name = readdirSync(rig.directory).find(
    (file) => file.endsWith('.cpuprofile') && file.includes(`.${running.pid}.0.`),
  );
  if (name === undefined) throw new Error(`the daemon left no profile:\n${running.log().slice(-2000)}`);
  return join(rig.directory, name);
}

/** The clock of a profile at a moment of Unix milliseconds: the same in every process of the host. */
function monotonicUs(unixMs: number): number {
  return Number(process.hrtime.bigint()) / 1000 + (unixMs - nowMs()) * 1000;
}

function say(line: string): void {
  process.stderr.write(`profile: ${line}\n`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function run(wanted: Wanted): Promise<void> {
  const { profiled, written, log } = await withRig(false, (rig) => profile(rig, wanted));
  process.stdout.write(`${renderProfile(profiled)}\n`);
  // Not before there is something to put there: a signal leaves no folder behind.
  const folder = wanted.out ?? mkdtempSync(join(tmpdir(), 'killswitchd-profile-'));
  mkdirSync(folder, { recursive: true });
  const files = { [PROFILE]: written, [LOG]: log };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  process.stdout.write(`
${join(folder, PROFILE)}
${join(folder, LOG)}
To look at the profile: open Chrome's DevTools, tab Performance, and load the file there.
`);
}

try {
  const wanted = read(process.argv.slice(2));
  if (wanted === null) process.stdout.write(HELP);
  else await run(wanted);
} catch (error) {
  say(messageOf(error));
  // A window that nothing is measured in any more is not waited for.
  process.exit(1);
}
