import { Argument, type Command } from 'commander';
import { EnvironmentSchema, SETTINGS } from '../config/environment.ts';
import { describeAllowed } from '../config/problem.ts';
import { FileSchema, type SchemaNode } from '../config/schema.ts';
import { VERSION } from '../version.ts';
import { type Edge, MEANINGS } from './edge.ts';

const SHELLS = { bash, zsh, fish } as const;

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';
/** The JSON Schemas as they are published, in the draft that editors read. */
export const SCHEMAS = {
  config: { $schema: DRAFT_07, title: 'killswitchd', ...FileSchema },
  env: { $schema: DRAFT_07, title: 'killswitchd environment', ...EnvironmentSchema },
};

/** `schema`, `completion` and `man`: what is known of file, environment and command line, for editors and readers. */
export function register(program: Command, edge: Edge, whole: () => Promise<Command>): void {
  const pages = { killswitchd: programPage, 'killswitchd.yaml': filePage };
  program
    .command('schema')
    .description('print the JSON Schema of the configuration file, or of the environment variables')
    .addArgument(new Argument('[what]', 'which of the two').choices(Object.keys(SCHEMAS)).default('config'))
    .action((what: keyof typeof SCHEMAS) => edge.out(JSON.stringify(SCHEMAS[what], null, 2)));
  program
    .command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SHELLS)))
    .action(async (shell: keyof typeof SHELLS) => edge.out(SHELLS[shell](tableOf(await whole())).trimEnd()));
  program
    .command('man')
    .description('print a page of the manual: killswitchd man | man -l -')
    .addArgument(new Argument('[page]', 'which page').choices(Object.keys(pages)).default('killswitchd'))
    .action(async (page: keyof typeof pages) => edge.out(pages[page](tableOf(await whole())).join('\n')));
}

/** What may be written in a place: one of some words, or anything where there are none; a file's name; a program. */
type Expected = readonly string[] | 'file' | 'program';

/** The program itself, and then its commands: made from what help is made from. */
const tableOf = (program: Command) => [rowOf(program), ...program.commands.map(rowOf)] as const;
type Table = ReturnType<typeof tableOf>;
type FlagRow = Table[0]['flags'][number];

function rowOf(command: Command) {
  const help = command.createHelp();
  return {
    name: command.name(),
    usage: help.commandUsage(command),
    purpose: command.description(),
    flags: help.visibleOptions(command).map((option) => ({
      /** `-h`, where there is one, and `--help`. */
      names: [option.short, option.long].flatMap((name) => name ?? []),
      shown: option.flags,
      value: option.isBoolean() ? null : expectedAt(option.flags, option.argChoices),
      says: option.description,
      /** The same with its default and what is allowed. */
      saysAll: help.optionDescription(option),
    })),
    places: help.visibleArguments(command).map((argument) => ({
      shown: argument.variadic ? `${argument.name()}...` : argument.name(),
      value: expectedAt(`<${argument.name()}>`, argument.argChoices),
      says: help.argumentDescription(argument),
    })),
  };
}

function expectedAt(shown: string, choices: readonly string[] = []): Expected {
  if (shown.endsWith('<file>')) return 'file';
  return shown === '<command>' ? 'program' : choices;
}

const wordsOf = (value: Expected | null) => (Array.isArray(value) ? value.join(' ') : '');
const namesOf = (flags: readonly FlagRow[]) => flags.flatMap(({ names }) => names).join(' ');
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function bash([program, ...commands]: Table): string {
  const choice = (value: Expected) => (value === 'file' ? 'files=1' : `words=${quoted(wordsOf(value))}`);
  const cases = commands.flatMap(({ name, flags, places: [first] }) => [
    ...flags.flatMap(({ names, value }) => {
      const at = names.map((flag) => `${name}:${flag}`).join('|');
      return value === null ? [] : [`    ${at}) ${choice(value)} ;;`];
    }),
    `    ${name}:*) flags=${quoted(namesOf(flags))}; ${choice(first?.value ?? [])} ;;`,
  ]);
  return `# bash completion for killswitchd, as written by: killswitchd completion bash
_killswitchd() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} command= flags= words= files= at
  COMPREPLY=()
  if [[ $current == '=' ]]; then
    current=
  elif [[ $before == '=' ]]; then
    before=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ -z $command && \${COMP_WORDS[at]} != -* ]]; then
      command=\${COMP_WORDS[at]}
    elif [[ $command == exec && \${COMP_WORDS[at]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((at + 1))
      elif ((COMP_CWORD == at + 1)); then
        COMPREPLY=($(compgen -c -- "$current"))
      else
        compopt -o default 2>/dev/null
      fi
      return
    fi
  done
  case $command:$before in
    :*) flags=${quoted(namesOf(program.flags))}; words=${quoted(commands.map(({ name }) => name).join(' '))} ;;
${cases.join('\n')}
  esac
  if [[ -n $files ]]; then
    compopt -o default 2>/dev/null
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -F _killswitchd killswitchd
`;
}

const zshAction = (value: Expected) =>
  value === 'file' ? '_files' : value.length > 0 ? `(${wordsOf(value)})` : ' ';

/** A flag as _arguments takes it: those that have a short name exclude each other. */
function zshFlag({ names, shown, value, says }: FlagRow): string {
  const text = says.replaceAll(/[[\]\\]/g, '\\$&');
  const placeholder = /<(.+)>/.exec(shown)?.[1]?.replaceAll(':', '\\:') ?? 'value';
  const given = value === null ? `[${text}]` : `=[${text}]:${placeholder}:${zshAction(value)}`;
  const repeated = says.includes('repeatable') ? '*' : names.length > 1 ? `(${names.join(' ')})` : '';
  return names.map((name) => quoted(`${repeated}${name}${given}`)).join(' ');
}

function zsh([program, ...commands]: Table): string {
  const lines = (flags: readonly FlagRow[], indent: string) =>
    flags.map((flag) => `${zshFlag(flag)} \\`).join(`\n${indent}`);
  const cases = commands.map(({ name, flags, places }) => {
    const rest = places.map(({ shown, value }, index) => {
      // The words begin with the two dashes where no flag comes before them.
      if (value === 'program')
        return `'*::program:{ [[ $words[1] == -- ]] && { shift words; ((CURRENT--)) }; _normal }'`;
      return quoted(`${shown.endsWith('...') ? '*' : String(index + 1)}:${shown}:${zshAction(value)}`);
    });
    return `      ${name})
        _arguments -S \\
          ${lines(flags, '          ')}
          ${rest.join(' ')}
        ;;`;
  });
  const purposes = commands.map(({ name, purpose }) =>
    quoted(`${name}:${purpose.replaceAll(/[:\\]/g, '\\$&')}`),
  );
  return `#compdef killswitchd
# zsh completion for killswitchd, as written by: killswitchd completion zsh
_killswitchd() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C \\
    ${lines(program.flags, '    ')}
    '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands=(
        ${purposes.join('\n        ')}
      )
      _describe -t commands command commands
      ;;
    argument)
      case $words[1] in
${cases.join('\n')}
      esac
      ;;
  esac
}
if [[ $funcstack[1] == _killswitchd ]]; then _killswitchd "$@"; else compdef _killswitchd killswitchd; fi
`;
}

function fish([program, ...commands]: Table): string {
  const offer = (condition: string, rest: string) => `complete -c killswitchd -n ${condition} ${rest}`;
  const valueOf = (value: Expected | null) => {
    if (value === null) return '';
    if (value === 'file') return ' -r -F';
    return value.length === 0 ? ' -x' : ` -x -a ${quoted(wordsOf(value))}`;
  };
  const flag = (condition: string, { names, value, says }: FlagRow) => {
    const switches = names.map((name) => name.replace(/^--/, '-l ').replace(/^-(?=.$)/, '-s '));
    return offer(quoted(condition), `${switches.join(' ')}${valueOf(value)} -d ${quoted(says)}`);
  };
  const place = (condition: string, value: Expected) => {
    if (value !== 'program')
      return value.length === 0 ? [] : [offer(quoted(condition), `-a ${quoted(wordsOf(value))}`)];
    const rest = `(complete -C (string replace -r '^.*? -- ' '' -- (commandline -cp)))`;
    return [offer(quoted(`${condition}; and contains -- -- (commandline -opc)`), `-a ${quoted(rest)}`)];
  };
  const none = '__fish_use_subcommand';
  return [
    '# fish completion for killswitchd, as written by: killswitchd completion fish',
    'complete -c killswitchd -f',
    ...program.flags.map((one) => flag(none, one)),
    ...commands.flatMap(({ name, purpose, flags, places: [first] }) => {
      const condition = `__fish_seen_subcommand_from ${name}`;
      return [
        offer(none, `-a ${name} -d ${quoted(purpose)}`),
        ...flags.map((one) => flag(condition, one)),
        ...place(condition, first?.value ?? []),
      ];
    }),
  ].join('\n');
}

/** Text as roff takes it: no escape, no hyphen that becomes another sign, and no request at the start of a line. */
const plain = (text: string) => text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/, '\\&$&');
const entry = (term: string, text: string) => ['.TP', `\\fB${plain(term)}\\fR`, plain(text)];

function head(name: string, section: number, purpose: string): string[] {
  return [
    `.TH ${plain(name.toUpperCase())} ${section} "" "killswitchd ${plain(VERSION)}" "killswitchd"`,
    '.SH NAME',
    `${plain(name)} \\- ${plain(purpose)}`,
  ];
}

function programPage([program, ...commands]: Table): string[] {
  return [
    ...head('killswitchd', 1, "keep an exchange's kill-switch timers armed while a trading bot lives"),
    '.SH SYNOPSIS',
    ...commands.flatMap(({ usage }, index) => [...(index === 0 ? [] : ['.br']), plain(usage)]),
    '.SH DESCRIPTION',
    plain(program.purpose),
    'Flags win over environment variables, those over the configuration file, and that over the defaults.',
    '.SH COMMANDS',
    ...commands.flatMap(({ name, purpose, flags, places }) => [
      `.SS ${plain(name)}`,
      plain(`${purpose.charAt(0).toUpperCase()}${purpose.slice(1)}.`),
      ...places.flatMap(({ shown, says }) => entry(shown, says)),
      ...flags.flatMap(({ shown, saysAll }) => entry(shown, saysAll)),
    ]),
    '.SH ENVIRONMENT',
    ...SETTINGS.flatMap(({ variable, node }) => entry(variable, node.description ?? '')),
    '.SH "EXIT STATUS"',
    ...Object.entries(MEANINGS).flatMap(([code, meaning]) => entry(code, `${meaning.replaceAll('`', '')}.`)),
    '.PP',
    'exec ends with the exit code of its bot.',
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
    const isSection = inner.properties !== undefined || key === '$schema';
    const allowed = isSection ? [] : [`Allowed: ${describeAllowed(inner)}.`];
    const fallback = inner.default === undefined ? [] : [`Default: ${JSON.stringify(inner.default)}.`];
    return [
      ...entry(at.join('.'), [inner.description ?? '', ...allowed, ...fallback].join(' ')),
      ...keysOf(inner, at),
      ...keysOf(inner.items ?? {}, [...path, `${key}[]`]),
    ];
  });
}
