import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../process/harness.ts';
import { eventually } from '../process/program.ts';
import { eventsIn } from '../process/simulated-exchange.ts';
import { type ContainerOptions, startPod } from './container.ts';
import type { Image } from './image.ts';
import {
  type ContainerSpec,
  environmentOf,
  KUBERNETES,
  type Labels,
  type Manifest,
  only,
  type PodSpec,
  type Probe,
  podOf,
  render,
  type Volume,
} from './manifests.ts';

/** Where the simulated exchange of a pod listens. */
const EXCHANGE = '127.0.0.1:17480';

const SIMULATED = ['exchange', '--listen', EXCHANGE, '--orders', 'none', '--event-log', '/log/events.jsonl'];

export type PodStage = Awaited<ReturnType<typeof stagePod>>;

/**
 * A pod that runs what an overlay says: the image with its environment, arguments, files and user, on an exchange of its
 * own. It is rendered with the address of the simulated exchange, the one line that everybody has to edit.
 */
export async function stagePod(
  scope: Scope,
  directory: string,
  image: Image,
  { overlay, podName, secret }: { overlay: string; podName: string; secret: Labels },
) {
  const own = mkdtempSync(join(directory, `${podName}-`));
  cpSync(KUBERNETES, join(own, 'kubernetes'), { recursive: true });
  const config = join(own, 'kubernetes/overlays', overlay, 'killswitchd.yaml');
  const text = readFileSync(config, 'utf8');
  writeFileSync(config, text.replace('https://exchange.example', `http://${EXCHANGE}`));
  const manifests = render(join(own, 'kubernetes/overlays', overlay));
  const spec = podOf(manifests);
  const volumes = new Map(
    spec.volumes.map((volume) => [volume.name, fillVolume(own, volume, spec, manifests, secret)]),
  );
  const pod = await startPod(scope);
  const { Entrypoint, Cmd } = image.config;
  const log = join(own, 'events');
  mkdirSync(log);
  const { runAsUser: uid = -1, runAsGroup: gid = -1, fsGroup = -1 } = spec.securityContext;
  chownSync(log, uid, gid);
  const hosts = join(own, 'hosts');
  // The names of Services: everything is on this host.
  writeFileSync(hosts, '127.0.0.1 localhost bot maker taker\n');
  const start = ({
    env,
    mounts = [],
    ...options
  }: Partial<ContainerOptions> & Pick<ContainerOptions, 'command'>) => {
    const all = [{ from: hosts, to: '/etc/hosts', readOnly: true }, ...mounts];
    const usual = { ...image.container, uid, gid, groups: [fsGroup] };
    return pod.start({ ...usual, ...options, mounts: all, env: { ...usual.env, ...env } });
  };
  return {
    spec,
    start(container: ContainerSpec) {
      const { readOnlyRootFilesystem = false, runAsUser = uid, runAsGroup = gid } = container.securityContext;
      return start({
        mounts: (container.volumeMounts ?? []).map(({ name, mountPath, readOnly = false }) => {
          return { from: volumes.get(name) ?? '', to: mountPath, readOnly };
        }),
        env: environmentOf(container, podName),
        readOnlyRoot: readOnlyRootFilesystem,
        uid: runAsUser,
        gid: runAsGroup,
        command: [
          ...(container.command ?? Entrypoint),
          ...(container.args ?? (container.command === undefined ? Cmd : [])),
        ],
      });
    },
    /** Runs any other command of the image beside the containers. */
    startOther: (command: readonly string[]) => start({ command }),
    /** `env` holds the key and secret that it accepts; else they are those of the demo. */
    async startExchange(env: Labels = {}) {
      const mounts = [{ from: log, to: '/log', readOnly: false }];
      const exchange = start({ env, mounts, command: [...Entrypoint, ...SIMULATED] });
      await eventually('the exchange', 20_000, () => exchange.output().includes(EXCHANGE));
    },
    events: () => eventsIn(join(log, 'events.jsonl')),
    filesOf: (volume: string) => readdirSync(volumes.get(volume) ?? '').sort(),
    /** As the kubelet asks: the status of the answer. */
    async probe(container: ContainerSpec, probe: Probe) {
      const { path, port } = probe.httpGet;
      const number = container.ports?.find(({ name }) => name === port)?.containerPort ?? port;
      return (await pod.ask(`http://127.0.0.1:${number}${path}`, probe.timeoutSeconds * 1000)).status;
    },
    /** Asks the status page, or another port. */
    ask: (path: string, port = 17477) => pod.ask(`http://127.0.0.1:${port}${path}`),
    /** Replaces a file of the ConfigMap as the kubelet does: all at once, by a link. */
    changeConfig(change: (text: string) => string) {
      const volume = spec.volumes.find(({ configMap }) => configMap !== undefined);
      const place = volumes.get(volume?.name ?? '') ?? '';
      const text = readFileSync(join(place, 'killswitchd.yaml'), 'utf8');
      writeVersion(place, { 'killswitchd.yaml': change(text) }, 0o644, fsGroup);
    },
  };
}

/** A volume as the kubelet makes it: files behind a link to their version, for the group of the pod. */
function fillVolume(
  own: string,
  volume: Volume,
  spec: PodSpec,
  manifests: readonly Manifest[],
  secret: Labels,
): string {
  const place = mkdtempSync(join(own, `volume-${volume.name}-`));
  const group = spec.securityContext.fsGroup ?? 0;
  chownSync(place, 0, group);
  chmodSync(place, 0o2777);
  if (volume.configMap !== undefined) {
    const { metadata, data = {} } = only(manifests, 'ConfigMap');
    if (metadata.name !== volume.configMap.name)
      throw new Error(`there is no ConfigMap ${volume.configMap.name}`);
    writeVersion(place, data, 0o644, group);
  }
  if (volume.secret !== undefined) {
    // It is made beforehand, unless it stands among the manifests.
    const own = manifests.find(({ kind }) => kind === 'Secret');
    const { secretName, defaultMode = 0o644 } = volume.secret;
    if (own !== undefined && own.metadata.name !== secretName)
      throw new Error(`there is no Secret ${secretName}`);
    const data = Object.entries(own?.data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString(),
    ]);
    writeVersion(place, own === undefined ? secret : Object.fromEntries(data), defaultMode, group);
  }
  return place;
}

function writeVersion(place: string, files: Labels, mode: number, group: number): void {
  const version = mkdtempSync(join(place, '..version-'));
  chownSync(version, 0, group);
  chmodSync(version, 0o2755);
  for (const [name, content] of Object.entries(files)) {
    const file = join(version, name);
    writeFileSync(file, content);
    chownSync(file, 0, group);
    chmodSync(file, mode);
    // The link of an earlier version serves this one as well.
    if (!existsSync(join(place, name))) symlinkSync(join('..data', name), join(place, name));
  }
  symlinkSync(version.slice(place.length + 1), join(place, '..next'));
  renameSync(join(place, '..next'), join(place, '..data'));
}
