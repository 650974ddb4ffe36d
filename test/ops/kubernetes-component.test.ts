import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  daemonOf,
  KUBERNETES,
  type Labels,
  type Manifest,
  notRestricted,
  only,
  podOf,
  render,
} from './manifests.ts';
import { misfits } from './upstream-types.ts';

const directory = mkdtempSync(join(tmpdir(), 'killswitchd-component-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const sidecar = podOf(render(join(KUBERNETES, 'overlays/sidecar')));
const standalone = render(join(KUBERNETES, 'overlays/standalone'));

/** Renders manifests of somebody else with the component. */
function renderWithComponent(resource: object): Manifest[] {
  const own = mkdtempSync(join(directory, 'own-'));
  cpSync(KUBERNETES, join(own, 'kubernetes'), { recursive: true });
  mkdirSync(join(own, 'bot'));
  writeFileSync(join(own, 'bot/bot.json'), JSON.stringify(resource));
  const kustomization = { resources: ['bot.json'], components: ['../kubernetes/components/sidecar'] };
  writeFileSync(join(own, 'bot/kustomization.yaml'), JSON.stringify(kustomization));
  return render(join(own, 'bot'));
}

describe('the component', () => {
  const workload = (kind: string, annotations: Labels, spec: object = {}) => ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'maker', annotations },
    spec: { template: { metadata: { labels: { app: 'maker' } }, spec } },
  });
  const botSpec = {
    terminationGracePeriodSeconds: 120,
    securityContext: { supplementalGroups: [7] },
    initContainers: [{ name: 'migrate', image: 'bot' }],
    containers: [
      { name: 'maker', image: 'bot', volumeMounts: [{ name: 'data', mountPath: '/data', subPath: 'maker' }] },
      { name: 'logger', image: 'logger', stdin: true },
    ],
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'rules', configMap: { name: 'rules', items: [{ key: 'a', path: 'b' }] } },
    ],
  };

  it.each(['Deployment', 'StatefulSet'])(
    'adds the daemon to a %s that asks for it, and keeps what it has',
    (kind) => {
      const found = only(
        renderWithComponent(workload(kind, { 'killswitchd/sidecar': 'true' }, botSpec)),
        kind,
      );
      const pod = found.spec.template.spec;
      expect(pod.terminationGracePeriodSeconds).toBe(120);
      // The daemon first, as deploy/README.md says.
      expect(pod.initContainers?.map(({ name }) => name)).toEqual([
        'killswitchd',
        'killswitchd-armed',
        'migrate',
      ]);
      expect(pod.containers).toEqual(botSpec.containers);
      expect(pod.volumes).toEqual([...sidecar.volumes, ...botSpec.volumes]);
      expect(pod.securityContext).toEqual({ ...sidecar.securityContext, ...botSpec.securityContext });
      expect(found.metadata).toEqual({ name: 'maker', annotations: { 'killswitchd/sidecar': 'true' } });
      expect(daemonOf(pod)).toEqual({ ...daemonOf(sidecar), image: 'killswitchd' });
      expect(found.spec.template.metadata.labels).toEqual({ app: 'maker', 'killswitchd/daemon': 'sidecar' });
    },
  );

  it.each([{ team: 'market-making' }, { 'killswitchd/sidecar': 'false' }])(
    'leaves a workload alone that has %j',
    (annotations) => {
      const other = workload('Deployment', annotations, botSpec);
      expect(renderWithComponent(other)).toEqual([other]);
    },
  );
});

describe('these tests notice', () => {
  const pod = podOf(standalone);

  it('a field that is mistyped, and one of another type', { timeout: 30_000 }, async () => {
    const text = JSON.stringify(standalone);
    const changed = (from: string, to: string) =>
      misfits(JSON.parse(text.replaceAll(from, to)) as Manifest[], directory);
    expect((await changed('timeoutSeconds', 'timeoutSecond')).join('\n')).toMatch(
      /'"timeoutSecond"' does not exist/,
    );
    expect((await changed('"periodSeconds":5', '"periodSeconds":"5"')).join('\n')).toMatch(/'number'/);
    expect((await changed('"egress"', '"egres"')).join('\n')).toMatch(/'"egres"' does not exist/);
    expect((await changed('"selector":', '"selectors":')).join('\n')).toMatch(/'"selectors"' does not exist/);
  });

  it('a pod that would not be admitted', () => {
    const [container] = pod.containers;
    const refused = (change: object) =>
      notRestricted({
        ...pod,
        containers: pod.containers.map((own) => ({
          ...own,
          securityContext: { ...own.securityContext, ...change },
        })),
      });
    expect(container?.name).toBe('killswitchd');
    expect(refused({ capabilities: { drop: ['NET_RAW'] } })).toEqual(['killswitchd: capabilities']);
    expect(refused({ runAsUser: 0 })).toEqual(['killswitchd: runAsUser']);
    expect(refused({ allowPrivilegeEscalation: undefined })).toEqual([
      'killswitchd: allowPrivilegeEscalation',
    ]);
    expect(notRestricted({ ...pod, hostNetwork: true })).toEqual(['hostNetwork']);
    expect(notRestricted({ ...pod, volumes: [{ name: 'host', hostPath: { path: '/' } } as never] })).toEqual([
      'host',
    ]);
  });
});
