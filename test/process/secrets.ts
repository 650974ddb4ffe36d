import type { DaemonProcess } from './daemon.ts';

/** A secret in the forms that a careless program would show it in. */
const formsOf = (text: string) => [
  text,
  encodeURIComponent(text),
  Buffer.from(text).toString('base64'),
  Buffer.from(text).toString('hex'),
];

/** What a daemon says on its outputs and its pages. */
export async function everythingSaidBy(daemon: DaemonProcess): Promise<string> {
  const paths = ['/metrics', '/api/v1/status', '/', '/readyz?verbose', '/livez?verbose'];
  const pages = await Promise.all(paths.map(async (path) => (await daemon.get(path)).body));
  return [daemon.stdout(), daemon.stderr(), ...pages].join('\n');
}

/** Which of the secrets a text shows, and in which form. */
export const shownIn = (text: string, secrets: readonly string[]) =>
  secrets.flatMap(formsOf).filter((form) => text.includes(form));
