import type { Command } from 'commander';
import type { Flags } from '../config/environment.ts';
import type { Secret } from '../config/secrets.ts';
import { createPoster } from '../daemon/url-requests.ts';
import { formatMessage, sayPosted, wasTaken } from '../telemetry/notifications.ts';
import { addConfigFlags, loadFor } from './config-flags.ts';
import { CommandError, type Edge, EXIT, misconfigured } from './edge.ts';

const WITHIN_MS = 10_000;

/** `notify --test`: posts a message and pings as the daemon would, and says what came of it; 69 where one fails. */
export function register(program: Command, edge: Edge): void {
  addConfigFlags(program.command('notify'))
    .description('try the addresses of the section notify')
    .requiredOption('--test', 'post a test message, and ping')
    .action(async (flags: Flags) => {
      const { url, pingUrl, format, name } = loadFor(edge, flags).loaded.config.notify;
      if (url === null && pingUrl === null)
        throw misconfigured('no address; write notify: { urlFile: /run/secrets/notify-url }');
      const { clock } = edge;
      const text = 'This is a test. Messages of the kill switch arrive here.';
      const { wallMs: atWallMs } = clock.now();
      const message = { event: 'test', level: 'info', atWallMs, text, markets: [], count: 1 } as const;
      const poster = createPoster(clock);
      const attempt = async (what: string, address: Secret | null, body: string | null): Promise<boolean> => {
        if (address === null) return true;
        const posted = await poster.post(address, body, WITHIN_MS);
        const isFine = wasTaken(posted);
        if (isFine) edge.out(`${what}: delivered, ${sayPosted(posted)}.`);
        else edge.err(`${what}: not delivered, ${sayPosted(posted)}.`);
        return isFine;
      };
      const isPosted = await attempt('Message', url, formatMessage(message, format, name));
      const isPinged = await attempt('Ping', pingUrl, null);
      await poster.close();
      if (!isPosted || !isPinged) throw new CommandError(EXIT.unreachable);
    });
}
