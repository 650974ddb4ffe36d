import { accessSync, constants, lstatSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '../config/config.ts';

/** What `run` would refuse on this host as it is now, one sentence each: a port that is taken, a directory that is missing. */
export async function checkHost({ web, control }: Config): Promise<string[]> {
  const problems: string[] = [];
  for (const [key, addresses] of [
    ['web.listen', web.listen],
    ['control.listen', control.listen],
  ] as const) {
    for (const address of addresses) {
      const why = address.kind === 'unix' ? socketProblem(address.path) : await portProblem(address);
      if (why !== null) problems.push(`${key}: ${address.text}: ${why}`);
    }
  }
  return problems;
}

function socketProblem(path: string): string | null {
  const folder = dirname(path);
  try {
    if (!lstatSync(folder).isDirectory() && !lstatSync(`${folder}/.`).isDirectory())
      return `${folder} is no directory`;
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    return codeOf(error) === 'ENOENT'
      ? `the directory ${folder} does not exist; make it, or set control.listen to another path`
      : `this user may not make files in ${folder}; set another path, or its owner`;
  }
  try {
    return lstatSync(path).isSocket() ? null : 'there is something at this path that is no socket';
  } catch {
    return null;
  }
}

/** Binds the port for a moment. */
function portProblem({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) =>
      resolve(PROBLEMS[codeOf(error)] ?? `cannot be opened (${codeOf(error)})`),
    );
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

const PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is in use by another process, perhaps by a killswitchd that runs',
  EADDRNOTAVAIL: 'this host has no such address',
  EACCES: 'ports below 1024 need privileges',
  ENOTFOUND: 'the host name is not known',
};

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
