import { renameSync, writeFileSync } from 'node:fs';
import type { DaemonProcess } from './daemon.ts';
import { eventually, said } from './program.ts';

/** Replaced whole, as an editor or a deployment does it. */
export function writeConfig(daemon: DaemonProcess, text: string): void {
  writeFileSync(`${daemon.configFile}.new`, text);
  renameSync(`${daemon.configFile}.new`, daemon.configFile);
}

export const linesOf = (daemon: DaemonProcess, event: string) =>
  daemon.stdout().split(`"event":"${event}"`).length - 1;

/** SIGHUP, and wait for the log to tell what came of it. */
export async function reloadBySignal(daemon: DaemonProcess, event: string): Promise<string> {
  const before = linesOf(daemon, event);
  daemon.signal('SIGHUP');
  await eventually(`${event}\n${said(daemon)}`, 10_000, () =>
    linesOf(daemon, event) > before ? true : null,
  );
  return (
    daemon
      .stdout()
      .slice(daemon.stdout().lastIndexOf(`"event":"${event}"`))
      .split('\n')[0] ?? ''
  );
}
