import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { selfSigned } from '../exchange/servers.ts';
import type { Scope } from '../process/harness.ts';

const FAR = '10.231.2.2';
const SILENT = '10.231.2.3';
/** The exchange answers here as well. */
export const OTHER = '10.231.2.4';
const FAR_SIDE = fileURLToPath(new URL('./far-side.mjs', import.meta.url));
/** Names that the hosts file alone knows. */
export const HOSTED = Array.from({ length: 24 }, (_, index) => `hosted${index}`);
let built = 0;

/** What a server of names does. */
export type Manner =
  | 'answers'
  | 'answers late'
  | 'names dead addresses first'
  | 'names a silent address first'
  | 'names another address'
  | 'names only another name'
  | 'is silent'
  | 'is truncated'
  | 'fails'
  | 'knows no name';

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/**
 * A daemon's network of its own, and an exchange, bots and a server of names behind a router: three network namespaces
 * (near, router, far), which end with the test. `exchangeUrl` is what stands behind the far side.
 */
export async function createNetwork({ onTestFinished }: Scope, directory: string, exchangeUrl: string) {
  built += 1;
  const [near, router, far] = (['near', 'router', 'far'] as const).map(
    (side) => `${side}${process.pid}-${built}`,
  ) as [string, string, string];
  for (const name of [near, router, far]) {
    ip('netns', 'add', name);
    onTestFinished(() => ip('netns', 'del', name));
    ip('-n', name, 'link', 'set', 'lo', 'up');
  }
  const join2 = (side: string, net: string, to: string) => {
    ip('link', 'add', 'up0', 'netns', side, 'type', 'veth', 'peer', 'name', to, 'netns', router);
    ip('-n', side, 'addr', 'add', `10.231.${net}.2/24`, 'dev', 'up0');
    ip('-n', router, 'addr', 'add', `10.231.${net}.1/24`, 'dev', to);
    ip('-n', side, 'link', 'set', 'up0', 'up');
    ip('-n', router, 'link', 'set', to, 'up');
    ip('-n', side, 'route', 'add', 'default', 'via', `10.231.${net}.1`);
  };
  join2(near, '1', 'near0');
  join2(far, '2', 'far0');
  for (const address of [SILENT, OTHER]) ip('-n', far, 'addr', 'add', `${address}/24`, 'dev', 'up0');
  execFileSync('ip', ['netns', 'exec', router, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward']);
  // `ip netns exec` puts these files over those of the host.
  const own = `/etc/netns/${near}`;
  mkdirSync(own, { recursive: true });
  onTestFinished(() => rmSync(own, { recursive: true, force: true }));
  writeFileSync(join(own, 'resolv.conf'), `nameserver ${FAR}\nsearch internal\n`);
  const hosts = [`127.0.0.1 localhost`, `${FAR} other ${HOSTED.join(' ').toUpperCase()} # by hand`];
  // As long as a list of hosts that serve advertisements.
  for (let index = 0; index < 150_000; index += 1) hosts.push(`0.0.0.0 ads${index}.tracker.example.com`);
  writeFileSync(join(own, 'hosts'), `${hosts.join('\n')}\n`);

  const { key, certificate } = selfSigned('exchange.test');
  const ca = join(directory, 'ca.pem');
  writeFileSync(ca, certificate);
  const socket = join(directory, 'exchange.sock');
  const { hostname, port } = new URL(exchangeUrl);
  const relay = createServer((from) => {
    const to = connect(Number(port), hostname);
    for (const one of [from, to]) one.on('error', () => undefined);
    from.on('close', () => to.destroy()).pipe(to);
    to.on('close', () => from.destroy()).pipe(from);
  }).listen(socket);
  onTestFinished(() => void relay.close());
  const how = { address: FAR, silent: SILENT, other: OTHER, exchange: socket, key, certificate };
  const side = spawn('ip', ['netns', 'exec', far, process.execPath, FAR_SIDE], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, FAR_SIDE: JSON.stringify(how) },
  });
  onTestFinished(() => void side.kill('SIGKILL'));
  const line = () => new Promise<void>((resolve) => side.stdout.once('data', () => resolve()));
  await line();
  const hole = ['-n', router, 'route'];
  return {
    /** Where the exchange is, by its name. */
    exchange: 'https://exchange.test',
    /** Starts a program on the near side. */
    near: { prefix: ['ip', 'netns', 'exec', near], env: { NODE_EXTRA_CA_CERTS: ca } },
    /** From here on the server of names behaves like this. */
    names(manner: Manner) {
      side.stdin.write(`${manner}\n`);
      return line();
    },
    /** While true, the router drops every packet to the far side, or to this address of it, without a word. */
    drop: (drops: boolean, address = FAR) => ip(...hole, drops ? 'add' : 'del', 'blackhole', `${address}/32`),
  };
}
