import type { Config } from './config.ts';
import { type Layer, layerOf } from './layer.ts';
import { type Command, meaninglessKeys } from './liveness.ts';
import { formatPath, type Path } from './problem.ts';

/** Sentences about what is allowed and yet worth a thought. Each begins with the key that it is about. */
export function findWarnings(config: Config, layers: readonly Layer[], command: Command | null): string[] {
  const isWritten = (path: Path) => (layerOf(layers, path)?.source ?? 'default') !== 'default';
  return [
    ...warnOfExchange(config, isWritten),
    ...warnOfShard(config),
    ...warnOfControl(config),
    ...warnOfLiveness(config, isWritten, command),
  ];
}

function warnOfExchange(config: Config, isWritten: (path: Path) => boolean): string[] {
  const warnings: string[] = [];
  const { baseUrls, sameAccount } = config.exchange;
  if (config.embeddedExchange && isWritten(['exchange', 'baseUrls'])) {
    warnings.push(
      'exchange.baseUrls: not used, since the daemon brings its own exchange (--embedded-exchange)',
    );
  }
  if (baseUrls.length > 1 && !sameAccount) {
    warnings.push(
      `exchange.baseUrls: only ${baseUrls[0]} is used for renewals, the others only with exchange.sameAccount: true`,
    );
  }
  return warnings;
}

function warnOfShard({ shard, fleet, markets }: Config): string[] {
  const { index, count } = shard;
  const warnings: string[] = [];
  if (index >= count) {
    warnings.push(
      `shard.index: shard ${index} of ${count} guards no market; it waits for a shard.count above ${index}`,
    );
  } else if (markets.length === 0) {
    warnings.push(
      `shard.index: none of the ${fleet.length} markets belongs to shard ${index} of ${count}; it guards none`,
    );
  }
  return warnings;
}

function warnOfControl({ control, embeddedExchange }: Config): string[] {
  const open = control.listen.filter(({ kind }) => kind === 'tcp').map(({ text }) => text);
  // Nothing of value is guarded at an exchange that the daemon brings along.
  if (control.tokenFile === null && open.length > 0 && !embeddedExchange) {
    return [
      `control.listen: every user and program of this host may send beats and commands to ${open.join(', ')}; set control.tokenFile, or listen at a unix: socket only`,
    ];
  }
  if (control.tokenFile !== null && open.length === 0) {
    return [
      'control.tokenFile: of no meaning without a HOST:PORT in control.listen; a unix: socket is guarded by its mode',
    ];
  }
  return [];
}

function warnOfLiveness(
  { liveness: { mode } }: Config,
  isWritten: (path: Path) => boolean,
  command: Command | null,
): string[] {
  const warnings: string[] = [];
  const idle = meaninglessKeys(mode)
    .map((key): Path => ['liveness', key])
    .filter(isWritten)
    .map(formatPath);
  if (idle.length > 0) warnings.push(`${idle.join(', ')}: of no meaning with liveness.mode: ${mode}`);
  if (mode === 'process' && command === null) {
    warnings.push(
      'liveness.mode: process: only for killswitchd exec -- BOT, which starts the bot; run refuses it',
    );
  }
  if (mode === 'none') {
    warnings.push(
      'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead',
    );
  }
  return warnings;
}
