import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

/** Places in /proc/PID/stat after the command's name, which stands in brackets and may hold anything: proc(5). */
const STATE = 0;
const GROUP = 2;
/** Dead, and waiting for somebody to ask how they ended. */
const GONE: readonly (string | undefined)[] = ['Z', 'X'];

/** The numbers of the processes that run in this process group; none where there is no /proc to tell. */
export async function membersOf(group: number): Promise<number[]> {
  const entries = await readdir('/proc').catch(() => []);
  const looks = entries
    .filter((entry) => /^\d+$/.test(entry))
    .map(async (entry) => {
      const text = await readFile(`/proc/${entry}/stat`, 'latin1').catch(() => '');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(fields[GROUP]) === group && !GONE.includes(fields[STATE]) ? [Number(entry)] : [];
    });
  return (await Promise.all(looks)).flat();
}

const SHELLS: readonly string[] = ['sh', 'ash', 'bash', 'busybox', 'dash', 'ksh', 'zsh'];
/** They start the bot by a process of their own, and pass signals on to it. */
const RUNNERS: readonly string[] = ['npm', 'npx', 'pnpm', 'yarn'];

/** A shell dies of a signal and leaves alone what it started. */
export function isShell([program = '']: readonly string[]): boolean {
  return SHELLS.includes(basename(program));
}

/**
 * The name of a program that stays between this process and the bot, so that its life says nothing of the bot's; null
 * for a bot that is started itself, and for a shell that makes way for it: `sh -c 'exec bot'`.
 */
export function findWrapper(command: readonly string[]): string | null {
  const name = basename(command[0] ?? '');
  if (RUNNERS.includes(name)) return name;
  if (!isShell(command)) return null;
  const script = command[command.findIndex((argument) => /^-\w*c$/.test(argument)) + 1] ?? '';
  return /^\s*exec\s[^;&|\n]*$/.test(script) ? null : name;
}
