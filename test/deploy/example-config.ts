import { parse } from 'yaml';
import { read } from '../docs/documents.ts';

/** The addresses of the web listener in the example configuration, which are the defaults. */
export function exampleListen(): string[] {
  const { web } = parse(read('config/killswitchd.example.yaml')) as { web: { listen: string[] } };
  return web.listen;
}
