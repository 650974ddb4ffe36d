import type { Argument, Command, Option } from 'commander';

/** What may be written in a place: a file's name, a program and its arguments, one of some words, or anything. */
export type Expected = 'file' | 'program' | 'anything' | readonly string[];

export interface FlagRow {
  /** `-h`, where there is one, and `--help`. */
  readonly names: readonly string[];
  /** `--config <file>`, as help shows it. */
  readonly shown: string;
  /** Null for a flag that takes no value. */
  readonly value: Expected | null;
  readonly says: string;
  /** The same with its default and what is allowed. */
  readonly saysAll: string;
}

/** A command as completions and manual tell of it. */
export interface CommandRow {
  readonly name: string;
  readonly usage: string;
  readonly purpose: string;
  readonly flags: readonly FlagRow[];
  readonly arguments: readonly { readonly shown: string; readonly value: Expected; readonly says: string }[];
}

/** The program itself, and then its commands: made from what help is made from. */
export function tableOf(program: Command): readonly [CommandRow, ...CommandRow[]] {
  return [rowOf(program), ...program.commands.map(rowOf)];
}

/** Help and completion name these values. The command checks them itself, and says what is wrong in its own words. */
export function offer<T extends Option | Argument>(place: T, values: readonly string[]): T {
  if (values.length > 0) place.argChoices = [...values];
  return place;
}

function rowOf(command: Command): CommandRow {
  const help = command.createHelp();
  return {
    name: command.name(),
    usage: help.commandUsage(command),
    purpose: command.description(),
    flags: help.visibleOptions(command).map((option) => ({
      names: [option.short, option.long].filter((name) => name !== undefined && name !== null),
      shown: option.flags,
      value: option.required || option.optional ? expectedAt(option.flags, option.argChoices) : null,
      says: option.description,
      saysAll: help.optionDescription(option),
    })),
    arguments: help.visibleArguments(command).map((argument) => ({
      shown: argument.variadic ? `${argument.name()}...` : argument.name(),
      value: expectedAt(`<${argument.name()}>`, argument.argChoices),
      says: help.argumentDescription(argument),
    })),
  };
}

function expectedAt(shown: string, choices: readonly string[] | undefined): Expected {
  if (choices !== undefined) return choices;
  if (shown.endsWith('<file>')) return 'file';
  return shown === '<command>' ? 'program' : 'anything';
}
