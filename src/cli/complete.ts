import type { Argument, Command, Option } from 'commander'
import { API_OPERATION_IDS } from '../contract/operations.ts'
import { guideNames } from '../http/docs/guide/pages.ts'
import { MCP_HOSTS } from './agents/hosts.ts'
import { findCommand, findOption, orDefault, parseWords, splitOption } from './command-line.ts'
import { placeholderOf } from './runner.ts'

/** Shells with completion. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const

/** A shell with completion. */
export type Shell = (typeof SHELLS)[number]

/** A possible completion. */
export interface CompletionWord {
  value: string
  description: string
}

/** Placeholders of names in usages, and whether each accepts several, separated by commas. */
export type Placeholders = ReadonlyMap<string, boolean>

/**
 * The completion at the cursor: words, a file or a directory of this machine, which the shell completes, or an id of
 * the running instance. `prefix` is the preceding part of the same word.
 */
export type Completion =
  | { kind: 'words'; candidates: CompletionWord[] }
  | { kind: 'files'; prefix: string }
  | { kind: 'directories'; prefix: string }
  | { kind: 'ids'; placeholder: string; prefix: string }
  /** A path of this machine, or the name of a server or project before a colon. */
  | { kind: 'place' }

/**
 * Completes a command line with the program's commands, options and values.
 *
 * @param words words after the program's name up to the cursor; the last one may be empty
 */
export function complete(program: Command, words: readonly string[], placeholders: Placeholders): Completion {
  const valuesOf = (of: Option | Argument, prefix: string, current: string) =>
    completeValue(of, prefix, current, placeholders)
  const current = words.at(-1) ?? ''
  const isOption = current.startsWith('-')
  // "berth help" completes commands.
  const before = words.slice(words[0] === 'help' && words.length > 1 ? 1 : 0, -1)
  const named = findCommand(program, before)
  if (named.unknown !== undefined) return matchPrefix(current, [])
  // A noun with options but no command has those of its default one.
  const isDefault = named.command !== program && (isOption || named.words.length > 0)
  const { command, words: rest } = isDefault ? orDefault(named) : named
  const { operands, pending, end } = parseWords(command, rest)
  if (end !== undefined) return { kind: 'files', prefix: '' }
  if (pending) return valuesOf(pending, '', current)
  if (!isOption) return completeOperand(command, operands, current, valuesOf)
  const { name, value } = splitOption(current)
  if (value === undefined)
    return matchPrefix(current, command.createHelp().visibleOptions(command).flatMap(optionCandidates))
  const option = findOption(command, name)
  return option?.required ? valuesOf(option, `${name}=`, value) : matchPrefix(current, [])
}

function completeOperand(
  command: Command,
  operands: readonly string[],
  current: string,
  valuesOf: (of: Argument, prefix: string, current: string) => Completion,
): Completion {
  const subcommands = command.createHelp().visibleCommands(command)
  if (subcommands.length > 0) {
    const names = subcommands.map((sub) => ({
      value: sub.name(),
      description: sub.summary() || sub.description(),
    }))
    return matchPrefix(current, operands.length === 0 ? names : [])
  }
  const declared = command.registeredArguments
  const last = declared.at(-1)
  const argument = declared[operands.length] ?? (last?.variadic ? last : undefined)
  return argument ? valuesOf(argument, '', current) : matchPrefix(current, [])
}

/** Values of placeholders that no instance needs to be asked for. */
const CHOICES: Readonly<Record<string, () => readonly string[]>> = {
  OPERATION: () => API_OPERATION_IDS,
  ASSISTANT: () => MCP_HOSTS.map(({ id }) => id),
  TOPIC: guideNames,
}

/** Completes the value of an option or argument: with its choices, else with the values of its placeholder. */
function completeValue(
  of: Option | Argument,
  prefix: string,
  current: string,
  placeholders: Placeholders,
): Completion {
  const name = 'flags' in of ? valueName(of) : of.name()
  const choices = CHOICES[name ?? '']?.() ?? of.argChoices
  if (choices) {
    const candidates = choices.map((choice) => ({ value: choice, description: '' }))
    const { candidates: values } = matchPrefix(current, candidates)
    return {
      kind: 'words',
      candidates: values.map(({ value }) => ({ value: prefix + value, description: '' })),
    }
  }
  if (name === 'SOURCE' || name === 'TARGET') return { kind: 'place' }
  if (name === 'FILE') return { kind: 'files', prefix }
  if (name === 'DIR') return { kind: 'directories', prefix }
  const several = name === undefined ? undefined : placeholders.get(name)
  if (name !== undefined && several !== undefined) {
    const before = several ? current.slice(0, current.lastIndexOf(',') + 1) : ''
    return { kind: 'ids', placeholder: name, prefix: prefix + before }
  }
  return { kind: 'words', candidates: [] }
}

/**
 * Returns the placeholder of an option's value. For --base-url it is INSTANCE, because no other URL is an instance's.
 */
const valueName = (option: Option): string | undefined =>
  option.long === '--base-url' ? 'INSTANCE' : placeholderOf(option)

const matchPrefix = (
  current: string,
  candidates: CompletionWord[],
): { kind: 'words'; candidates: CompletionWord[] } => ({
  kind: 'words',
  candidates: candidates.filter(({ value }) => value.startsWith(current)),
})

const optionCandidates = (option: Option): CompletionWord[] =>
  option.long ? [{ value: option.long, description: option.description }] : []
