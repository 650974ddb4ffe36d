import { type Command, Option } from 'commander';
import type { Flags } from '../config/environment.ts';

/** The flags that `run`, `exec` and `check-config` share. Their values are checked with the rest of the configuration. */
export function addConfigFlags(command: Command): Command {
  const collect = (value: string, before: readonly string[] | undefined) => [...(before ?? []), value];
  return command
    .option('--config <file>', 'configuration file, YAML or JSON (KILLSWITCHD_CONFIG)')
    .addOption(
      new Option(
        '--markets <list>',
        'markets as MARKET[:SECONDS[:TYPE+TYPE]],... instead of those of the file; repeatable (KILLSWITCHD_MARKETS)',
      ).argParser(collect),
    )
    .option('--timeout-seconds <seconds>', 'timeout of markets that give none (KILLSWITCHD_TIMEOUT_SECONDS)')
    .option(
      '--shard <i/n>',
      'guard the markets of shard I of N only, counted from 0; I may be the name of a StatefulSet pod (KILLSWITCHD_SHARD)',
    )
    .option(
      '--liveness-mode <mode>',
      'how the daemon knows that the bot lives: beat, file, http, process or none (KILLSWITCHD_LIVENESS_MODE)',
    )
    .option(
      '--shutdown-policy <policy>',
      'what a stop does with the timers: delete, keep or handoff (KILLSWITCHD_SHUTDOWN_POLICY)',
    )
    .addOption(
      new Option(
        '--web-listen <host:port>',
        'address of status page, health and metrics; repeatable (KILLSWITCHD_WEB_LISTEN)',
      ).argParser(collect),
    )
    .option('--log-level <level>', 'trace, debug, info, warn, error or fatal (KILLSWITCHD_LOG_LEVEL)')
    .option('--log-format <format>', 'json, journal or text (KILLSWITCHD_LOG_FORMAT)');
}

/** What commander read, as `loadConfig` takes it. Other options of the same command are ignored. */
export function flagsFrom(options: Readonly<Record<string, unknown>>): Flags {
  const text = (key: string) => (typeof options[key] === 'string' ? options[key] : undefined);
  const list = (key: string) => (Array.isArray(options[key]) ? options[key].map(String) : undefined);
  return {
    config: text('config'),
    markets: list('markets'),
    timeoutSeconds: text('timeoutSeconds'),
    shard: text('shard'),
    livenessMode: text('livenessMode'),
    shutdownPolicy: text('shutdownPolicy'),
    webListen: list('webListen'),
    logLevel: text('logLevel'),
    logFormat: text('logFormat'),
    embeddedExchange: options['embeddedExchange'] === true,
  };
}
