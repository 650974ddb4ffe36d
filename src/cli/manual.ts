import { Argument, type Command } from 'commander';
import { SETTINGS } from '../config/environment.ts';
import { FileSchema, type SchemaNode } from '../config/schema.ts';
import { VERSION } from '../version.ts';
import { type CommandRow, tableOf } from './command-table.ts';
import { type Edge, EXIT, MEANINGS } from './edge.ts';

const PAGES = ['killswitchd', 'killswitchd.yaml'];

/** `man [PAGE]`: prints a page of the manual, made from the commands' own table and the schema of the file. */
export function registerMan(program: Command, edge: Edge, whole: () => Promise<Command>): void {
  program
    .command('man')
    .description('print a page of the manual: killswitchd man | man -l -')
    .addArgument(new Argument('[page]', 'which page').choices(PAGES).default(PAGES[0]))
    .action(async (page: string) => {
      const lines = page === PAGES[0] ? programPage(tableOf(await whole())) : filePage();
      edge.out(lines.join('\n'));
      edge.finish(EXIT.ok);
    });
}

/** Text as roff takes it: no escape, no hyphen that becomes another sign, and no request at the start of a line. */
const plain = (text: string) => text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/, '\\&$&');
const bold = (text: string) => `\\fB${plain(text)}\\fR`;
const entry = (term: string, ...texts: readonly string[]) => ['.TP', bold(term), ...texts.map(plain)];

function head(name: string, section: number, purpose: string): string[] {
  return [
    `.TH ${plain(name.toUpperCase())} ${section} "" "killswitchd ${plain(VERSION)}" "killswitchd"`,
    '.SH NAME',
    `${plain(name)} \\- ${plain(purpose)}`,
  ];
}

function programPage([program, ...commands]: readonly [CommandRow, ...CommandRow[]]): string[] {
  return [
    ...head('killswitchd', 1, "keep an exchange's kill-switch timers armed while a trading bot lives"),
    '.SH SYNOPSIS',
    ...commands.flatMap(({ usage }, index) => [...(index === 0 ? [] : ['.br']), plain(usage)]),
    '.SH DESCRIPTION',
    plain(program.purpose),
    plain(
      'Flags win over environment variables, those over the configuration file, and that over the defaults.',
    ),
    '.SH COMMANDS',
    ...commands.flatMap(({ name, purpose, flags, arguments: places }) => [
      `.SS ${plain(name)}`,
      plain(`${purpose.charAt(0).toUpperCase()}${purpose.slice(1)}.`),
      ...places.flatMap(({ shown, says }) => entry(shown, says)),
      ...flags.flatMap(({ shown, saysAll }) => entry(shown, saysAll)),
    ]),
    '.SH ENVIRONMENT',
    ...SETTINGS.flatMap(({ variable, node }) => entry(variable, node.description ?? '')),
    '.SH "EXIT STATUS"',
    ...Object.entries(MEANINGS).flatMap(([code, meaning]) => entry(code, `${meaning.replaceAll('`', '')}.`)),
    plain('exec ends with the exit code of its bot.'),
    '.SH "SEE ALSO"',
    '.BR killswitchd.yaml (5)',
  ];
}

function filePage(): string[] {
  return [
    ...head('killswitchd.yaml', 5, 'configuration file of killswitchd'),
    '.SH DESCRIPTION',
    plain('YAML or JSON, named by --config or KILLSWITCHD_CONFIG. What is not written has its default.'),
    '.SH KEYS',
    ...keysOf(FileSchema, []),
    '.SH "SEE ALSO"',
    '.BR killswitchd (1)',
  ];
}

function keysOf(node: SchemaNode, path: readonly string[]): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, inner]) => {
    const at = [...path, key];
    const allowed = inner.enum === undefined ? [] : [`Allowed: ${inner.enum.map(String).join(', ')}.`];
    const fallback = inner.default === undefined ? [] : [`Default: ${JSON.stringify(inner.default)}.`];
    const market = inner.items?.anyOf?.find(({ properties }) => properties !== undefined);
    return [
      ...entry(at.join('.'), [inner.description ?? '', ...allowed, ...fallback].join(' ')),
      ...keysOf(inner, at),
      ...(market === undefined ? [] : keysOf(market, [...path, `${key}[]`])),
    ];
  });
}
