import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

/** Two cores of this host: the subject has the first for itself, the exchange and the bench share the second. */
export type Cores = Readonly<Record<'subject' | 'others' | 'both', string | null>>;

/** Nulls where nothing can be pinned. Pins the bench itself. */
export function pinCores(): Cores {
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(readProc('self/status'))?.[1] ?? '';
  const [, first = '', between, second = ''] = /^(\d+)([-,])(\d+)/.exec(list) ?? [];
  const others = between === '-' ? String(Number(first) + 1) : second;
  const { status } = spawnSync('taskset', ['-p', '-c', others, String(process.pid)], { stdio: 'ignore' });
  if (status !== 0) return { subject: null, others: null, both: null };
  return { subject: first, others, both: `${first},${others}` };
}

/** What a reader must know of the machine; nothing that names it. */
export function machineFacts(): Readonly<Record<string, string>> {
  const { node, undici = 'none', openssl } = process.versions;
  return {
    Machine: `${cpus().length} cores of ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    Runtime: `Node ${node}, undici ${undici} in it, OpenSSL ${openssl}`,
    'Load before': readProc('loadavg').split(' ')[0] ?? 'unknown',
  };
}

/** Nothing where it cannot be read, as of a process that has ended. */
export function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}

/** Seconds that all threads of a process have been on a core so far, to the nanosecond. */
export function cpuSeconds(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`))
    nanoseconds += Number(readProc(`${pid}/task/${task}/schedstat`).split(' ')[0] ?? 0);
  return nanoseconds / 1e9;
}

/** How often its threads went to sleep so far, and were woken again. */
export function wakesOf(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`).map((task) => readProc(`${pid}/task/${task}/status`));
  const voluntary = /^voluntary_ctxt_switches:\s*(\d+)/m;
  return tasks.reduce((sum, status) => sum + Number(voluntary.exec(status)?.[1] ?? 0), 0);
}

export function rssMb(pid: number): number {
  return Number(/VmRSS:\s*(\d+)/.exec(readProc(`${pid}/status`))?.[1] ?? Number.NaN) / 1024;
}
