import { Agent, request } from 'undici';
import type { DaemonProcess } from './daemon.ts';
import type { Scope } from './harness.ts';
import { eventually, said } from './program.ts';

export interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is where it is a text, else as JSON. */
  readonly body?: unknown;
}

export interface Reply {
  readonly status: number;
  /** Of the error that the reply holds; null where it holds none. */
  readonly code: string | null;
  readonly text: string;
  readonly body: unknown;
}

export type Ask = (path: string, asked?: Asked) => Promise<Reply>;

/** Where the daemon takes beats and commands, as its log says it: `unix:/PATH` or a URL. */
export function controlsOf(daemon: DaemonProcess, count = 1): Promise<readonly string[]> {
  return eventually(`${count} control listeners`, 15_000, () => {
    if (daemon.hasExited()) throw new Error(`the daemon ended:\n${said(daemon)}`);
    const lines = daemon.logged('control-listening');
    if (lines.length < count) return null;
    return lines.map(({ msg }) => msg.slice('Beats and commands: '.length));
  });
}

/** Asks a listener over as many connections as are given; they end with the test. */
export function asker({ onTestFinished }: Scope, address: string, connections = 1): Ask {
  const path = address.startsWith('unix:') ? address.slice('unix:'.length) : null;
  const agent = new Agent({ connections, ...(path === null ? {} : { connect: { socketPath: path } }) });
  onTestFinished(() => agent.destroy());
  return async (target, { method = 'POST', headers = {}, body } = {}) => {
    const isText = typeof body === 'string';
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await request(`${path === null ? address : 'http://localhost'}${target}`, {
      method,
      headers: { ...type, ...headers },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
      dispatcher: agent,
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, text, ...read(text) };
  };
}

function read(text: string): Pick<Reply, 'code' | 'body'> {
  try {
    const body = JSON.parse(text) as { readonly error?: { readonly code?: string } };
    return { code: body.error?.code ?? null, body };
  } catch {
    return { code: null, body: null };
  }
}
