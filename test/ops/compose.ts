import { chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { read } from '../docs/documents.ts';
import { ROOT } from '../process/program.ts';
import type { ContainerOptions, Mount } from './container.ts';
import type { Image } from './image.ts';

/** With the fields that the services of this repository have. */
interface Service {
  readonly read_only: boolean;
  readonly user?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly profiles: readonly string[];
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
}

export const COMPOSE = parse(read('compose.yaml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
};

/** The services of a profile by their names, as containers of the image, with a project folder of their own. */
export function containersOf(profile: string, image: Image, project: string): Map<string, ContainerOptions> {
  const services = Object.entries(COMPOSE.services).filter(([, { profiles }]) => profiles.includes(profile));
  mkdirSync(project);
  const hosts = join(project, 'hosts');
  writeFileSync(hosts, services.map(([name]) => `127.0.0.1 ${name}\n`).join(''));
  const names: Mount = { from: hosts, to: '/etc/hosts', readOnly: true };
  const { uid, gid } = image.container;
  const volume = (text: string): Mount => {
    const [source = '', to = '', mode] = text.split(':');
    if (source.startsWith('.')) return { from: join(ROOT, source), to, readOnly: mode === 'ro' };
    // A new volume begins as what it covers.
    const from = join(project, source);
    if (!existsSync(from)) {
      const covered = statSync(join(image.root, to));
      mkdirSync(from, { mode: covered.mode });
      chownSync(from, covered.uid, covered.gid);
    }
    return { from, to, readOnly: false };
  };
  const secret = (name: string): Mount => {
    const from = join(project, COMPOSE.secrets[name]?.file ?? name);
    if (!existsSync(from)) {
      mkdirSync(dirname(from), { recursive: true });
      const known: Readonly<Record<string, string>> = { 'api-key': 'demo-key', 'api-secret': 'demo-secret' };
      writeFileSync(from, known[name] ?? 'a-token-of-this-test', { mode: 0o400 });
      chownSync(from, uid, gid);
    }
    return { from, to: `/run/secrets/${name}`, readOnly: true };
  };
  const containers = services.map(([name, service]) => {
    const mounts = [names, ...(service.volumes ?? []).map(volume), ...(service.secrets ?? []).map(secret)];
    return [name, containerOf(service, image, mounts)] as const;
  });
  return new Map(containers);
}

function containerOf(service: Service, image: Image, mounts: readonly Mount[]): ContainerOptions {
  const { Entrypoint, Cmd, User } = image.config;
  const [uid = 0, gid = 0] = (service.user ?? User).split(':').map(Number);
  const own = service.entrypoint === undefined ? Cmd : [];
  return {
    ...image.container,
    readOnlyRoot: service.read_only,
    mounts,
    uid,
    gid,
    env: { ...image.container.env, ...service.environment },
    command: [...(service.entrypoint ?? Entrypoint), ...(service.command ?? own)],
  };
}
