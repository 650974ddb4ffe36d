/** What an operator may ask for while the daemon runs. */
export const COMMANDS = ['arm', 'disarm', 'pause', 'resume', 'trip'] as const;
export type CommandName = (typeof COMMANDS)[number];

/** `markets` null means all of them. `forMs` is the length of a pause and of no meaning elsewhere. */
export interface OperatorCommand {
  readonly does: CommandName;
  readonly markets: readonly string[] | null;
  readonly forMs: number;
}

/** How far a market has come with what was asked of it. */
export interface Progress {
  readonly market: string;
  /** `impossible`: it will not happen as things stand; `says` tells why. */
  readonly state: 'done' | 'waiting' | 'impossible';
  /** One sentence for a person, with the market's name and the moments that matter. */
  readonly says: string;
}
