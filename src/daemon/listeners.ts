import type { Config } from '../config/config.ts';
import { startControl } from '../operator/control.ts';
import type { ControlSources } from '../operator/control-sources.ts';
import { startWeb, type WebOptions } from '../operator/web.ts';
import type { SecretsInForce } from './credentials.ts';

/** Everything that listens, bound. */
export interface Listeners {
  /** Where the status page is. */
  readonly web: readonly string[];
  /** Where beats and commands are taken. */
  readonly control: readonly string[];
  close(): Promise<void>;
}

/** Opens the read-only listeners, then those that change state. Rejects where one cannot be bound; then none is open. */
export async function openListeners(
  { web, control }: Config,
  pages: Omit<WebOptions, 'listen'>,
  { token, hide }: Pick<SecretsInForce, 'token' | 'hide'>,
  sourcesWith: (status: ControlSources['status']) => ControlSources,
): Promise<Listeners> {
  const opened = await startWeb({ ...pages, listen: web.listen.map(({ text }) => text) });
  try {
    const taken = await startControl({
      listen: control.listen.map(({ text }) => text),
      access: control.access,
      token,
      hide,
      sources: sourcesWith(opened.status),
    });
    return {
      web: opened.addresses,
      control: taken.addresses,
      async close() {
        await taken.close();
        await opened.close();
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
