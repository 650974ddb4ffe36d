import { spawnSync } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../process/program.ts';
import type { Manifest } from './manifests.ts';

/** The package that has the types of an API group, as they are generated from its published definitions. */
const packageOf = (apiVersion: string): string =>
  apiVersion.startsWith('monitoring.coreos.com/')
    ? `@kubernetes-models/prometheus-operator/${apiVersion}`
    : `kubernetes-models/${apiVersion}`;

/**
 * What the published types of Kubernetes and of the Prometheus operator have against these objects: fields that they do
 * not know, fields that are missing, and values of another type. The compiler looks for unknown fields, which an API
 * server would drop; the validators of the packages look at what no type can say.
 */
export async function misfits(manifests: readonly Manifest[], directory: string): Promise<string[]> {
  const folder = mkdtempSync(join(directory, 'types-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const lines = manifests.map(
    ({ apiVersion, kind, ...rest }, index) =>
      `import type { I${kind} as Type${index} } from '${packageOf(apiVersion)}';\n` +
      `export const object${index}: Type${index} = ${JSON.stringify({ apiVersion, kind, ...rest })};\n`,
  );
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'objects.ts'), lines.join(''));
  const invalid = await Promise.all(manifests.map(validate));
  return [...compile(folder), ...invalid.flat()];
}

function compile(folder: string): string[] {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024'];
  const args = [tsc, ...flags, '--types', '', 'objects.ts'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  return `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
}

async function validate(manifest: Manifest): Promise<string[]> {
  const { apiVersion, kind, metadata } = manifest;
  type Model = new (from: object) => { validate(): void };
  const models = (await import(packageOf(apiVersion))) as Readonly<Record<string, Model>>;
  const Model = models[kind];
  if (Model === undefined) return [`${apiVersion} has no ${kind}`];
  try {
    new Model(manifest).validate();
    return [];
  } catch (error) {
    return [`${kind} ${metadata.name}: ${String(error)}`];
  }
}
