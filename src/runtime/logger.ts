/** The log levels, most talkative first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** How much is logged. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Fields of a log message. Never a credential, a file's content or a command's text. */
type LogFields = Record<string, unknown>

/** Takes one message of one level. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

/**
 * Returns a logger that writes a line a message: `TIME LEVEL message key=value …`. A few lines of our own
 * instead of a library: a start-up of milliseconds cannot pay for one. An error that berth foresaw is written as its
 * message, with those of its causes, and only at level debug with its stack; any other always with its stack.
 *
 * @param level messages below it are dropped
 * @param write receives each line, newline included
 * @param now the time, milliseconds since 1970
 */
export function createLogger(level: LogLevel, write: (line: string) => void, now: () => number): Logger {
  const least = LOG_LEVELS.indexOf(level)
  const isVerbose = level === 'debug'
  const at = (name: LogLevel) => {
    if (LOG_LEVELS.indexOf(name) < least) return () => {}
    const label = name.toUpperCase().padEnd(5)
    return (message: string, fields: LogFields = {}) => {
      const facts = Object.entries(fields).map(([key, value]) => ` ${key}=${format(value, isVerbose)}`)
      write(`${new Date(now()).toISOString()} ${label} ${message.replaceAll('\n', '\\n')}${facts.join('')}\n`)
    }
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Formats a value as one word, or quoted. @param isVerbose whether every error has its stack */
function format(value: unknown, isVerbose: boolean): string {
  if (value instanceof Error)
    return JSON.stringify(isVerbose || !isForeseen(value) ? stackOf(value) : messagesOf(value))
  if (typeof value === 'string') return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value)
  return JSON.stringify(value) ?? 'undefined'
}

/** Names of the classes of errors that nothing in berth throws on purpose: those of the language and of libraries. */
const UNFORESEEN =
  /^(?:|Eval|Range|Reference|Syntax|Type|URI|Aggregate|SQLite|Drizzle\w*|TransactionRollback)Error$/

/** Reports whether berth threw an error on purpose, with a message for a person, or the system refused something. */
function isForeseen(error: Error): boolean {
  if ('syscall' in error && 'code' in error) return true
  return !UNFORESEEN.test(error.constructor.name)
}

/** Returns the messages of an error and its causes, each once. */
function messagesOf(error: Error): string {
  const messages: string[] = []
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
    if (!messages.some((message) => message.includes((cause as Error).message))) messages.push(cause.message)
  return messages.join(' Cause: ')
}

const stackOf = (error: Error): string => error.stack ?? error.message
