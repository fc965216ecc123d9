import type { RunnableCommand } from './command.ts'
import { deploy } from './commands/deploy.ts'
import { exec } from './commands/exec.ts'
import { logs } from './commands/logs.ts'
import { shell } from './commands/shell.ts'
import { sync } from './commands/sync.ts'
import { trigger } from './commands/trigger.ts'
import { NOUNS } from './nouns/index.ts'
import { reset } from './nouns/snapshots.ts'
import { commanderOption } from './options.ts'

/** Commands without a noun that call an operation. */
const COMMANDS: readonly RunnableCommand[] = [exec, shell, deploy, sync, logs, trigger, reset]

/** Returns the command lines that call each operation, one a line, with the options that they take. */
export function operationCommands(): Map<string, string> {
  const lines = new Map<string, string>()
  const add = (command: RunnableCommand, words: string): void => {
    const line = [words, ...optionWords(command)].join(' ')
    for (const id of command.operations ?? []) {
      const before = lines.get(id)
      lines.set(id, before === undefined ? line : `${before}\n${line}`)
    }
  }
  for (const noun of NOUNS)
    for (const command of noun.commands) add(command, `berth ${noun.name} ${command.usage}`)
  for (const command of COMMANDS) add(command, `berth ${command.shownUsage ?? command.usage}`)
  return lines
}

const optionWords = ({ options = {} }: RunnableCommand): string[] =>
  Object.entries(options).map(([name, option]) => {
    const { long, flags } = commanderOption(name, option)
    return `[${long ?? flags}${option.placeholder === undefined ? '' : ` ${option.placeholder}`}]`
  })
