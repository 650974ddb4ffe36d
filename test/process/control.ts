import { Agent, type Dispatcher, request } from 'undici';
import type { DaemonProcess } from './daemon.ts';
import type { Scope } from './harness.ts';
import { eventually, said } from './program.ts';

export interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** Sent as it is where it is a text, else as JSON. */
  readonly body?: unknown;
}

export type Reply = Awaited<ReturnType<ReturnType<typeof asker>>>;

/** Where the daemon takes beats and commands, as its log says it: `unix:/PATH` or a URL. */
export function controlsOf(daemon: DaemonProcess, count = 1): Promise<readonly string[]> {
  return eventually(`${count} control listeners`, 15_000, () => {
    if (daemon.hasExited()) throw new Error(`the daemon ended:\n${said(daemon)}`);
    const lines = daemon.logged('control-listening');
    if (lines.length < count) return null;
    return lines.map(({ msg }) => msg.slice('Beats and commands: '.length));
  });
}

/** Asks a listener over as many connections as are given, which end with the test; of a stream its first event. */
export function asker({ onTestFinished }: Scope, address: string, connections = 1) {
  const path = address.startsWith('unix:') ? address.slice('unix:'.length) : null;
  const agent = new Agent({ connections, ...(path === null ? {} : { connect: { socketPath: path } }) });
  onTestFinished(() => agent.destroy());
  return async (target: string, { method = 'POST', headers = {}, body }: Asked = {}) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const reply = await request(`${path === null ? address : 'http://localhost'}${target}`, {
      method: method as Dispatcher.HttpMethod,
      headers: { ...type, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      dispatcher: agent,
    });
    const kind = String(reply.headers['content-type']);
    let text = '';
    for await (const chunk of reply.body) {
      text += String(chunk);
      if (kind.startsWith('text/event-stream') && /^data:.*\n\n/m.test(text)) break;
    }
    const isJson = kind.startsWith('application/json') && text !== '';
    const json: unknown = isJson ? JSON.parse(text) : null;
    const { error } = (json ?? {}) as {
      readonly error?: { readonly code: string; readonly message: string };
    };
    /** Code and message are those of the error that the reply holds; the body is null where it is no JSON. */
    return {
      status: reply.statusCode,
      headers: reply.headers,
      text,
      body: json,
      code: error?.code ?? null,
      message: error?.message ?? '',
    };
  };
}
