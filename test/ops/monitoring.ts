import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deployed, RULES, readDeployed } from '../deploy/rules.ts';
import { startProcess } from '../liveness/started.ts';
import type { Scope } from '../process/harness.ts';
import { serve as serveHttp } from '../process/http-server.ts';
import { eventually } from '../process/program.ts';

/** Starts one of Debian's servers at a free port, which it logs. It ends with the test. Resolves with its address. */
async function serve(context: Scope, command: string, args: readonly string[]): Promise<string> {
  const { child, output } = startProcess(context, command, args);
  return eventually(`${command} to listen`, 30_000, () => {
    const address = /msg="Listening on" address=(\S+)/.exec(output())?.[1];
    if (address !== undefined) return `http://${address}`;
    if (child.exitCode !== null) throw new Error(`${command} ended:\n${output()}`);
    return null;
  });
}

type Labels = Readonly<Record<string, string>>;

/** One series of an answer. */
interface Result {
  readonly metric: Labels;
  /** Unix seconds and the value as text. */
  readonly values: readonly (readonly [number, string])[];
}

interface Alert {
  readonly labels: Labels;
  readonly annotations: Labels;
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

/** Debian's Prometheus with our own configuration and rules. `change` edits the text of the configuration. */
export async function startPrometheus(context: Scope, directory: string, change: (text: string) => string) {
  const folder = join(directory, 'prometheus');
  mkdirSync(folder);
  const file = join(folder, 'prometheus.yaml');
  const text = change(readDeployed('prometheus/prometheus.yaml'));
  writeFileSync(file, text.replace('- killswitchd.rules.yaml', `- ${deployed(RULES)}`));
  const url = await serve(context, 'prometheus', [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
  ]);
  await eventually('Prometheus to be ready', 30_000, async () => (await fetch(`${url}/-/ready`)).ok);
  const get = async <T>(path: string, asked: Labels): Promise<T> => {
    const answer = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(asked).toString()}`);
    const body = (await answer.json()) as { status: string; error?: string; data: T };
    if (body.status !== 'success') throw new Error(`${body.error}\n${JSON.stringify(asked)}`);
    return body.data;
  };
  return {
    /** The series of an expression over a time, in Unix seconds; throws where Prometheus does not understand it. */
    async range(query: string, from: number, to: number, step: number) {
      const asked = { query, start: String(from), end: String(to), step: String(step) };
      return (await get<{ result: Result[] }>('query_range', asked)).result;
    },
    /** The values of a label, as Grafana asks for those of a variable. */
    labelValues: (label: string, selector: string) =>
      get<string[]>(`label/${label}/values`, { 'match[]': selector }),
    /** The labels of the series of an expression now. */
    async query(query: string) {
      const { result } = await get<{ result: Result[] }>('query', { query });
      return result.map(({ metric }) => metric);
    },
    alerts: async () => (await get<{ alerts: Alert[] }>('alerts', {})).alerts,
  };
}

/** Debian's Alertmanager with our own route, whose receivers are `receiver`. Resolves with HOST:PORT. */
export async function startAlertmanager(
  context: Scope,
  directory: string,
  receiver: string,
): Promise<string> {
  const folder = join(directory, 'alertmanager');
  mkdirSync(folder);
  const file = join(folder, 'alertmanager.yaml');
  const text = readDeployed('prometheus/alertmanager.yaml');
  writeFileSync(file, text.replaceAll('http://127.0.0.1:9095', receiver));
  const url = await serve(context, 'prometheus-alertmanager', [
    `--config.file=${file}`,
    `--storage.path=${join(folder, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
    '--cluster.listen-address=',
  ]);
  return new URL(url).host;
}

/** What Alertmanager sends to a webhook. */
interface Message {
  readonly path: string;
  /** On the monotonic clock, milliseconds. */
  readonly atMs: number;
  readonly status: string;
  readonly alerts: readonly Alert[];
}

/** Whoever is paged: takes down every message. */
export async function startReceiver(scope: Scope): Promise<{ url: string; messages: Message[] }> {
  const messages: Message[] = [];
  const url = await serveHttp(scope, ({ path, body }, response) => {
    const { status, alerts } = JSON.parse(body) as Pick<Message, 'status' | 'alerts'>;
    messages.push({ path, atMs: performance.now(), status, alerts });
    response.end();
  });
  return { url, messages };
}
