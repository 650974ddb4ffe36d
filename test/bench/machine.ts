import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';

/** Two cores of this host: the subject has the first for itself, the exchange and the bench share the second. */
export interface Cores {
  readonly subject: string | null;
  readonly others: string | null;
}

/** What a reader must know of the machine; nothing that names it. */
export interface MachineFacts {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly v8: string;
  readonly undici: string | undefined;
  readonly openssl: string;
  readonly pinned: boolean;
  readonly loadBefore: number;
}

/** Nulls where nothing can be pinned. Pins the bench itself. */
export function pinCores(): Cores {
  const nowhere = { subject: null, others: null };
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(readProc('self/status'))?.[1] ?? '';
  const allowed = list.split(',').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, place) => String(from + place));
  });
  const [subject, others] = allowed;
  if (subject === undefined || others === undefined) return nowhere;
  const pinned = spawnSync('taskset', ['-p', '-c', others, String(process.pid)], { stdio: 'ignore' });
  return pinned.status === 0 ? { subject, others } : nowhere;
}

export function machineFacts(pinned: boolean): MachineFacts {
  const { node, v8, undici, openssl } = process.versions;
  const loadBefore = Number(readProc('loadavg').split(' ')[0] ?? 0);
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node,
    v8,
    undici,
    openssl,
    pinned,
    loadBefore,
  };
}

/** A certificate for the loopback that nobody else trusts. Throws where openssl is not there. */
export function makeCertificate(directory: string): { readonly certFile: string; readonly keyFile: string } {
  const certFile = join(directory, 'certificate.pem');
  const keyFile = join(directory, 'key.pem');
  const what =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const where = ['-keyout', keyFile, '-out', certFile];
  const made = spawnSync('openssl', [...what.split(' '), ...names, ...where], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`openssl made no certificate: ${made.stderr || String(made.error)}`);
  return { certFile, keyFile };
}

function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}

/** Seconds that all threads of a process have been on a core so far, to the nanosecond. */
export function cpuSeconds(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readProc(`${pid}/task/${task}/schedstat`).split(' ')[0] ?? 0);
  }
  return nanoseconds / 1e9;
}

export function rssMb(pid: number): number {
  return Number(/VmRSS:\s*(\d+)/.exec(readProc(`${pid}/status`))?.[1] ?? Number.NaN) / 1024;
}

export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
