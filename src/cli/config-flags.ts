import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { type Flags, SETTINGS } from '../config/environment.ts';
import { type Load, loadConfig } from '../config/load.ts';
import { findModeFlaw } from '../config/meaning.ts';
import { CommandError, type Edge, EXIT, misuse } from './edge.ts';
import { offer } from './flags.ts';

/** The flags that `run`, `exec` and `check-config` share. Their values are checked with the rest of the configuration. */
export function addConfigFlags(command: Command): Command {
  const collect = (value: string, before: readonly string[] | undefined) => [...(before ?? []), value];
  // Whichever of two files were dropped, its markets would not be guarded.
  const takeOnce = (value: string, before: string | undefined) => {
    if (before !== undefined) throw misuse('--config: found a second time; allowed: one file');
    return value;
  };
  for (const { flag, list, node, variable } of SETTINGS) {
    if (flag === null) continue;
    const option = new Option(`${flag.name} <${flag.placeholder}>`, `${flag.help} (${variable})`);
    if (list) option.argParser(collect);
    if (flag.key === 'config') option.argParser(takeOnce);
    const fits = (word: string) => flag.key !== 'livenessMode' || findModeFlaw(word, command.name()) === null;
    command.addOption(offer(option, (node.enum ?? []).map(String).filter(fits)));
  }
  return command;
}

/** The configuration of a command, and how it is read again. */
export function loadFor(edge: Edge, flags: Flags, command?: 'run' | 'exec') {
  const { env } = edge;
  const load: Load = (lookAt) => loadConfig({ env, flags, command, lookAt });
  const loaded = load();
  if (loaded.kind === 'ok') return { loaded, load, env };
  return refuse(edge, flags, loaded.shown());
}

const USUAL_FILE = './killswitchd.yaml';

/** Says what is wrong, and throws what ends with 78. Where no file was named, that comes first: it is often all that is wrong. */
export function refuse(edge: Edge, { config }: Flags, shown: readonly string[]): never {
  if (config === undefined && edge.env['KILLSWITCHD_CONFIG'] === undefined) {
    const advice = existsSync(USUAL_FILE)
      ? `${USUAL_FILE} lies here: write --config ${USUAL_FILE}`
      : 'write --config FILE or set KILLSWITCHD_CONFIG, or set all that it would say in the environment';
    edge.err(`No configuration file is named; ${advice}.`);
  }
  for (const problem of shown) edge.err(problem);
  throw new CommandError(EXIT.config);
}
