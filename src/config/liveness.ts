import { BOT_PLACE, checkLivenessUrl, fillInBot } from './addresses.ts';
import type { Config, MarketConfig, Settled } from './config.ts';
import { LIVENESS_MODES } from './liveness-schema.ts';
import { BOT_PATTERN } from './market-schema.ts';
import type { Path } from './problem.ts';
import type { Mistake } from './validate.ts';
import { describe } from './wording.ts';

export type LivenessMode = Config['liveness']['mode'];
/** The commands that keep timers armed. `exec` starts the bot itself. */
export type Command = 'run' | 'exec';

/** What `checkLiveness` must know beside the values of the section. */
export interface Surroundings {
  /** Null where the configuration is only looked at. */
  readonly command: Command | null;
  readonly markets: readonly MarketConfig[];
  /** How many addresses take beats. */
  readonly controlListeners: number;
  /** Something at, above or below the path was already found wrong. */
  readonly isMistaken: (path: Path) => boolean;
}

export interface CheckedLiveness {
  readonly mistakes: readonly Mistake[];
  readonly missing: readonly Mistake[];
  /** Null where no mode is given. */
  readonly liveness: Config['liveness'] | null;
}

/** Modes that `killswitchd exec` can do: it watches the bot itself, or leaves that to the bot's beats. */
const MODES_OF_EXEC: readonly LivenessMode[] = ['process', 'beat'];

const MODE: Path = ['liveness', 'mode'];
const FILE: Path = ['liveness', 'file'];
const ADDRESS: Path = ['liveness', 'url'];
const PROBE: Path = ['liveness', 'probeEverySeconds'];
const TTL: Path = ['liveness', 'ttlSeconds'];
const CONTROL: Path = ['control', 'listen'];

/** Checks mode, file, address and pace of the evidence against each other, the bots and the command. */
export function checkLiveness(values: Settled, around: Surroundings): CheckedLiveness {
  const { liveness: given } = values;
  const mistakes: Mistake[] = [];
  const missing: Mistake[] = [];
  const lack = (path: Path, text: string) => {
    if (!around.isMistaken(path)) missing.push({ path, text });
  };
  // The command says by itself what it watches.
  const mode = given.mode ?? (around.command === 'exec' && !around.isMistaken(MODE) ? 'process' : undefined);
  if (mode === undefined) lack(MODE, MODE_IS_MISSING);
  else mistakes.push(...checkMode(mode, around.command));
  if (mode === 'file' && given.file === undefined) lack(FILE, FILE_IS_MISSING);
  if (mode === 'http' && given.url === undefined) lack(ADDRESS, ADDRESS_IS_MISSING);
  if (mode === 'beat' && around.controlListeners === 0 && !around.isMistaken(CONTROL)) {
    mistakes.push({ path: CONTROL, text: CONTROL_IS_MISSING });
  }
  mistakes.push(...checkTarget(FILE, given.file, around), ...checkTarget(ADDRESS, given.url, around));
  if (mode === undefined) return { mistakes, missing, liveness: null };

  const mostSeconds = given.ttlSeconds / 3;
  const probeEverySeconds = given.probeEverySeconds ?? usualProbe(mode, given.ttlSeconds);
  const looks = !meaninglessKeys(mode).includes('probeEverySeconds');
  if (looks && probeEverySeconds >= mostSeconds && ![PROBE, TTL].some(around.isMistaken)) {
    const most = Math.floor(mostSeconds * 100) / 100;
    const text = `found ${probeEverySeconds}; allowed: less than ${most}, a third of liveness.ttlSeconds, so that a look may fail while the bot lives`;
    mistakes.push({ path: PROBE, text });
  }
  const liveness = {
    mode,
    file: given.file ?? null,
    url: given.url ?? null,
    probeEverySeconds,
    ttlSeconds: given.ttlSeconds,
    startupGraceSeconds: given.startupGraceSeconds,
    onStale: given.onStale,
  };
  return { mistakes, missing, liveness };
}

const MEANING_OF_MODE = {
  beat: 'the bot says so at control.listen',
  file: 'it touches liveness.file',
  http: 'liveness.url answers',
  process: 'it runs as a child of killswitchd exec',
  none: 'nobody watches the bot: timers are renewed for as long as the daemon runs',
} as const satisfies Record<LivenessMode, string>;

const MODE_IS_MISSING = `missing; how the daemon knows that the bot lives must be chosen, there is no default; allowed: ${LIVENESS_MODES.map((mode) => `${mode} (${MEANING_OF_MODE[mode]})`).join(', ')}`;
const FILE_IS_MISSING =
  'missing with liveness.mode: file; write the file that the bot touches, such as liveness: { mode: file, file: /run/bots/bot.alive }, or set KILLSWITCHD_LIVENESS_FILE';
const ADDRESS_IS_MISSING =
  'missing with liveness.mode: http; write the address of the bot, such as liveness: { mode: http, url: http://127.0.0.1:8080/alive }, or set KILLSWITCHD_LIVENESS_URL';
const CONTROL_IS_MISSING =
  'missing with liveness.mode: beat, for that is where beats come in; write control: { listen: ["unix:/run/killswitchd/control.sock"] }, or set KILLSWITCHD_CONTROL_LISTEN';

function checkMode(mode: LivenessMode, command: Command | null): Mistake[] {
  if (command === 'run' && mode === 'process') {
    const others = LIVENESS_MODES.filter((other) => other !== 'process').join(', ');
    const text = `found "process", for which the daemon must start the bot itself; allowed with run: ${others}; or start both with killswitchd exec -- BOT`;
    return [{ path: MODE, text }];
  }
  if (command === 'exec' && !MODES_OF_EXEC.includes(mode)) {
    const text = `found "${mode}"; allowed with exec: ${MODES_OF_EXEC.join(', ')}; leave it out for process`;
    return [{ path: MODE, text }];
  }
  return [];
}

/** What is wrong with a file name or an address, whether the mode uses it or not. */
function checkTarget(path: Path, template: string | undefined, { markets }: Surroundings): Mistake[] {
  if (template === undefined) return [];
  const placeholder = /\{[^{}]*\}/g;
  const stranger = (template.match(placeholder) ?? []).find((found) => found !== BOT_PLACE);
  if (stranger !== undefined) {
    const text = `found the placeholder ${describe(stranger)}; allowed: ${BOT_PLACE}, which stands for the name of the bot`;
    return [{ path, text }];
  }
  const bots = botsOf(markets).filter((bot) => new RegExp(BOT_PATTERN).test(bot));
  if (bots.length > 1 && !template.includes(BOT_PLACE)) {
    const names = bots.length > 5 ? `${bots.slice(0, 5).join(', ')}, ...` : bots.join(', ');
    const example = path === FILE ? '/run/bots/{bot}.alive' : 'http://127.0.0.1:8080/{bot}/alive';
    const text = `found one for the ${bots.length} bots ${names}; allowed: one with ${BOT_PLACE} in the place of the bot's name, such as ${example}`;
    return [{ path, text }];
  }
  if (path === FILE) return checkFileName(template);
  for (const bot of bots) {
    const checked = checkLivenessUrl(template, bot);
    if (checked.kind === 'wrong') return [{ path, text: checked.text }];
  }
  return [];
}

function checkFileName(template: string): Mistake[] {
  if (!template.endsWith('/') && !template.includes('\0')) return [];
  return [
    {
      path: FILE,
      text: `found ${describe(template)}; allowed: the name of a file, such as /run/bots/bot.alive`,
    },
  ];
}

/** Seconds. Two looks may fail, and the third is still in time. */
function usualProbe(mode: LivenessMode, ttlSeconds: number): number {
  return Math.min(mode === 'http' ? 5 : 1, ttlSeconds / 4);
}

/** The keys of the section that change nothing with a mode. */
export function meaninglessKeys(mode: LivenessMode): readonly (keyof Config['liveness'])[] {
  switch (mode) {
    case 'beat':
      return ['file', 'url', 'probeEverySeconds'];
    case 'file':
      return ['url'];
    case 'http':
      return ['file'];
    case 'process':
      return ['file', 'url'];
    case 'none':
      return ['file', 'url', 'probeEverySeconds', 'ttlSeconds', 'startupGraceSeconds', 'onStale'];
    default:
      return mode satisfies never;
  }
}

/** The file of each bot with mode file, `{bot}` filled in. None with another mode. */
export function filesOfBots({
  liveness,
  markets,
}: Config): { readonly bot: string; readonly path: string }[] {
  const { mode, file } = liveness;
  if (mode !== 'file' || file === null) return [];
  return botsOf(markets).map((bot) => ({ bot, path: fillInBot(file, bot) }));
}

/** The address of each bot with mode http, `{bot}` filled in. None with another mode. */
export function urlsOfBots({ liveness, markets }: Config): { readonly bot: string; readonly url: string }[] {
  const { mode, url } = liveness;
  if (mode !== 'http' || url === null) return [];
  return botsOf(markets).map((bot) => ({ bot, url: fillInBot(url, bot) }));
}

/** Each bot once, in the order of the markets. */
function botsOf(markets: readonly MarketConfig[]): string[] {
  return [...new Set(markets.map(({ bot }) => bot))];
}
