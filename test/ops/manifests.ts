import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { IContainer } from 'kubernetes-models/v1/Container';
import type { IPodSpec } from 'kubernetes-models/v1/PodSpec';
import type { IProbe } from 'kubernetes-models/v1/Probe';
import type { IVolume } from 'kubernetes-models/v1/Volume';
import { parseAllDocuments } from 'yaml';
import { read } from '../docs/documents.ts';
import { ROOT } from '../process/program.ts';

export const KUBERNETES = join(ROOT, 'deploy/kubernetes');
export const { version: VERSION } = JSON.parse(read('package.json')) as { version: string };

export type Labels = Readonly<Record<string, string>>;
type Quantities = Readonly<Record<string, string | number>>;

// Objects of Kubernetes, with the fields that the manifests of this repository always have.

type With<T, Field extends keyof T> = T & { readonly [Name in Field]-?: NonNullable<T[Name]> };

export type Probe = With<IProbe, 'httpGet' | 'timeoutSeconds'>;
export type Volume = IVolume;

export type ContainerSpec = Omit<With<IContainer, 'image' | 'securityContext'>, `${string}Probe`> & {
  readonly resources: { readonly requests: Quantities; readonly limits: Quantities };
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
};

export type PodSpec = Omit<
  With<IPodSpec, 'volumes' | 'securityContext' | 'terminationGracePeriodSeconds'>,
  'initContainers' | 'containers'
> & {
  readonly initContainers?: readonly ContainerSpec[];
  readonly containers: readonly ContainerSpec[];
};

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Labels };
  readonly data?: Labels;
  readonly spec: {
    readonly replicas?: number;
    readonly selector?: { readonly matchLabels: Labels };
    readonly strategy?: { readonly type: string };
    readonly updateStrategy?: { readonly type: string };
    readonly template: {
      readonly metadata: { readonly labels: Labels; readonly annotations?: Labels };
      readonly spec: PodSpec;
    };
  };
}

/** The objects of a text of several documents, as Kubernetes reads it. */
export const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as Manifest);

/** What `kubectl apply -k` would send to the cluster. */
export const render = (directory: string): Manifest[] =>
  manifestsIn(execFileSync('kubectl', ['kustomize', directory], { encoding: 'utf8', stdio: 'pipe' }));

/** The one object of a kind. */
export function only(manifests: readonly Manifest[], ...kinds: readonly string[]): Manifest {
  const [found, ...more] = manifests.filter(({ kind }) => kinds.includes(kind));
  if (found === undefined || more.length > 0)
    throw new Error(`not one ${kinds.join(' or ')}, but ${more.length}`);
  return found;
}

export const workloadOf = (manifests: readonly Manifest[]): Manifest =>
  only(manifests, 'Deployment', 'StatefulSet');

export const podOf = (manifests: readonly Manifest[]): PodSpec => workloadOf(manifests).spec.template.spec;

export const containersOf = (pod: PodSpec): ContainerSpec[] => [
  ...(pod.initContainers ?? []),
  ...pod.containers,
];

export function daemonOf(pod: PodSpec): ContainerSpec {
  const found = containersOf(pod).find(({ name }) => name === 'killswitchd');
  if (found === undefined) throw new Error('no container is named killswitchd');
  return found;
}

/** The value of a variable as the container sees it; $(NAME) stands for a variable before it. */
export function environmentOf({ env = [] }: ContainerSpec, podName: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const { name, value = '', valueFrom } of env) {
    if (valueFrom === undefined) {
      values[name] = value.replaceAll(/\$\((\w+)\)/g, (written, other: string) => values[other] ?? written);
    } else if (valueFrom.fieldRef?.fieldPath === 'metadata.name') {
      values[name] = podName;
    } else {
      throw new Error(`${name}: comes from where this test knows nothing of`);
    }
  }
  return values;
}

/** What the Dockerfile tells a container runtime, as far as a manifest leaves it to the image. */
export function imageDefaults() {
  const text = read('Dockerfile').replaceAll(/\\\n\s*/g, '');
  const list = (instruction: string) =>
    JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, 'm').exec(text)?.[1] ?? '[]') as string[];
  const variables = /^ENV (.*)$/m.exec(text)?.[1] ?? '';
  const entrypoint = list('ENTRYPOINT');
  return {
    /** What the entry point starts under its init: Node and the program, without Node's options. */
    program: entrypoint.slice(entrypoint.indexOf('--') + 1).filter((word) => !word.startsWith('--')),
    command: list('CMD'),
    user: (/^USER (\d+:\d+)$/m.exec(text)?.[1] ?? '').split(':').map(Number),
    env: Object.fromEntries(variables.split(' ').map((pair) => pair.split('=') as [string, string])),
  };
}
