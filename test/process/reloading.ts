import { renameSync, writeFileSync } from 'node:fs';
import type { DaemonProcess } from './daemon.ts';
import { eventually, said } from './program.ts';

/** Replaced whole, as an editor or a deployment does it. */
export function writeConfig(daemon: DaemonProcess, text: string): void {
  writeFileSync(`${daemon.configFile}.new`, text);
  renameSync(`${daemon.configFile}.new`, daemon.configFile);
}

export const linesOf = (daemon: DaemonProcess, event: string) => daemon.logged(event).length;

const countOf = (daemon: DaemonProcess, text: string) => daemon.stdout().split(text).length - 1;

/** SIGHUP, and wait for the log to tell what came of it: the line of an earlier reload may come late. */
export async function reloadBySignal(daemon: DaemonProcess, event: string): Promise<string> {
  const line = `"event":"${event}","trigger":"signal"`;
  const before = countOf(daemon, line);
  daemon.signal('SIGHUP');
  await eventually(`${event}\n${said(daemon)}`, 10_000, () => countOf(daemon, line) > before);
  return daemon.stdout().slice(daemon.stdout().lastIndexOf(line)).split('\n')[0] ?? '';
}
